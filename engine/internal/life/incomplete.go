package life

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// removeIncomplete removes the incomplete files that a killed process leaves beside the state of a stack in a file
// backend.
//
// Pulumi's storage library replaces a state file atomically. Before that it writes the attribute file (content type and
// checksum, which Pulumi does not read), which is not atomic. A process that is killed in between leaves the old state,
// which is correct, and truncated attributes, with which the state cannot be loaded ("EOF"). Without attributes it can.
func removeIncomplete(backend, stack string) error {
	project, name := filepath.Split(filepath.FromSlash(stack))
	state := filepath.Join(backend, ".pulumi/stacks", filepath.Base(project), name+".json")
	attributes := []string{state + ".attrs", state + ".bak.attrs"}
	for _, path := range attributes {
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading the attributes of the stack %s: %w", stack, err)
		}
		if !json.Valid(content) {
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("removing the attributes of the stack %s: %w", stack, err)
			}
		}
	}
	leftovers, err := filepath.Glob(escapeGlob(state) + ".*.tmp")
	if err != nil {
		return err
	}
	for _, path := range leftovers {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing an incomplete state of the stack %s: %w", stack, err)
		}
	}
	return nil
}

// escapeGlob returns a pattern that matches exactly this path.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
