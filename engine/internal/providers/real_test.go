package providers

import (
	"os"
	"path/filepath"
	"testing"
)

// tool finds a program of the checkout's .tools/bin; tests of real things fail without it.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../../.tools/bin", name))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%s is needed (make tools): %v", name, err)
	}
	return path
}
