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

// mendTorn removes what a killed process leaves half-written beside a stack's state in a file backend.
//
// Pulumi's storage library replaces a state file at once, but writes the file of its attributes (content type and
// checksum, which Pulumi doesn't read) in place before that. A process that is killed in between leaves the old state,
// which is right, and attributes that are cut off, for which the state cannot be loaded any more ("EOF"). Without
// attributes, it can.
func mendTorn(backend, stack string) error {
	project, name := filepath.Split(filepath.FromSlash(stack))
	state := filepath.Join(backend, ".pulumi/stacks", filepath.Base(project), name+".json")
	attributes := []string{state + ".attrs", state + ".bak.attrs"}
	for _, path := range attributes {
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("the attributes of the stack %s: %w", stack, err)
		}
		if !json.Valid(content) {
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("the attributes of the stack %s: %w", stack, err)
			}
		}
	}
	leftovers, err := filepath.Glob(escapeGlob(state) + ".*.tmp")
	if err != nil {
		return err
	}
	for _, path := range leftovers {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("an unfinished state of the stack %s: %w", stack, err)
		}
	}
	return nil
}

// escapeGlob makes a pattern that matches exactly this path.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
