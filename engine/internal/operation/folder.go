package operation

import (
	"context"
	"crypto/sha1" // part of the names of the CLI's settings files
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	pkgworkspace "github.com/pulumi/pulumi/pkg/v3/workspace"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// folder implements the CLI's interface to the working directory. The CLI's own implementation uses the folder of the
// process and caches what it read. This one belongs to one command and reads the current content.
type folder struct {
	path  string
	found func() found
}

// found is the project of a folder, with the path of its file.
type found struct {
	project *workspace.Project
	path    string
	err     error
}

var _ pkgworkspace.Context = folder{}

func newFolder(path string) folder {
	// Read once for each command, because it takes a millisecond
	return folder{path, sync.OnceValue(func() found {
		file, err := workspace.DetectProjectPathFrom(path)
		if err != nil {
			return found{err: err}
		}
		project, err := workspace.LoadProject(file)
		return found{project, file, err}
	})}
}

// New returns the selected stacks of the project in this folder. The argument is ignored: all callers in the CLI pass
// the working directory.
func (f folder) New(string) (pkgworkspace.W, error) {
	project, root, err := f.project()
	if err != nil {
		return nil, err
	}
	sum := sha1.Sum([]byte(root))
	name := fmt.Sprintf("%s-%s-%s", project.Name, hex.EncodeToString(sum[:]), pkgworkspace.WorkspaceFile)
	path, err := workspace.GetPulumiPath(pkgworkspace.WorkspaceDir, name)
	if err != nil {
		return nil, err
	}
	selected := &selection{path: path}
	return selected, selected.read()
}

// ReadProject reads the project of a folder or of its nearest parent that has one, and returns the project's folder.
func (f folder) ReadProject(path string) (*workspace.Project, string, error) {
	if path != "" {
		return pkgworkspace.Instance.ReadProject(path)
	}
	project, file, err := f.project()
	if err != nil {
		return nil, "", err
	}
	return project, filepath.Dir(file), nil
}

// project returns a copy of the project, and the path of its file.
func (f folder) project() (*workspace.Project, string, error) {
	found := f.found()
	if found.err != nil {
		return nil, found.path, found.err
	}
	own := *found.project
	return &own, found.path, nil
}

// settings returns the settings file of a stack.
func (f folder) settings(stack tokens.QName) (string, error) {
	project, path, err := f.project()
	if err != nil {
		return "", err
	}
	return workspace.ProjectStackPath(path, project, stack), nil
}

// resolve returns the absolute path for a path that is relative to the client's working directory.
func (f folder) resolve(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(f.path, path)
}

func (f folder) LoadPluginProjectAt(ctx context.Context, path string) (*workspace.PluginProject, string, error) {
	return pkgworkspace.Instance.LoadPluginProjectAt(ctx, f.resolve(path))
}

func (f folder) LoadBaseProjectFrom(ctx context.Context, path string) (workspace.BaseProject, string, error) {
	return pkgworkspace.Instance.LoadBaseProjectFrom(ctx, f.resolve(path))
}

func (folder) GetStoredCredentials() (workspace.Credentials, error) {
	return workspace.GetStoredCredentials()
}

// selection is the file in PULUMI_HOME with the selected stack of a project.
type selection struct {
	path string
	held pkgworkspace.Settings
}

func (s *selection) Settings() *pkgworkspace.Settings { return &s.held }

func (s *selection) read() error {
	text, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, &s.held)
	}
	if err != nil {
		return fmt.Errorf("unable to read workspace settings: %w", err)
	}
	return nil
}

// Save writes the file atomically.
func (s *selection) Save() error {
	if s.held.IsEmpty() {
		if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return err
	}
	text, err := json.MarshalIndent(&s.held, "", "    ")
	if err != nil {
		return err
	}
	draft, err := os.CreateTemp(filepath.Dir(s.path), filepath.Base(s.path))
	if err != nil {
		return err
	}
	_, err = draft.Write(text)
	if closing := draft.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(draft.Name(), s.path)
	}
	if err != nil {
		_ = os.Remove(draft.Name())
	}
	return err
}
