package operation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/pulumi/pulumi/pkg/v3/backend"
	"github.com/pulumi/pulumi/pkg/v3/backend/diy"
	"github.com/pulumi/pulumi/pkg/v3/resource/stack"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/env"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// stateFile is the file of a stack in a file backend. The backend does not export how it writes a state.
type stateFile struct {
	path  string
	stack tokens.QName
	// first reports whether the state has no resources yet. Then it is no use as a backup.
	first bool
}

var _ backend.SnapshotPersister = stateFile{}

// findStateFile returns the file of a stack. There is none in an object store, or if states are compressed, or if the
// backend keeps all states that there were.
func findStateFile(of backend.Stack) (stateFile, bool) {
	reference, named := of.Ref().(interface{ StackBasePath() string })
	address := of.Backend().URL()
	if !named || !strings.HasPrefix(address, diy.FilePathPrefix) || env.DIYBackendRetainCheckpoints.Value() {
		return stateFile{}, false
	}
	parsed, err := url.Parse(address)
	if err != nil || !filepath.IsAbs(parsed.Path) {
		return stateFile{}, false
	}
	path := filepath.Join(parsed.Path, reference.StackBasePath()+".json")
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return stateFile{}, false
	}
	return stateFile{path: path, stack: of.Ref().FullyQualifiedName()}, true
}

// Save replaces the state; the one before stays as backup. At each moment there is a complete state.
func (f stateFile) Save(deployment apitype.TypedDeployment) error {
	checkpoint, err := stack.DeploymentV3ToCheckpointWithMarshaler(
		compact{}, f.stack, deployment.Deployment, deployment.Version, deployment.Features)
	if err != nil {
		return fmt.Errorf("serializing checkpoint: %w", err)
	}
	text, err := compact{}.Marshal(checkpoint)
	if err != nil {
		return fmt.Errorf("serializing checkpoint: %w", err)
	}
	if f.first {
		err = f.write(text, f.backup())
	} else {
		err = f.keep()
	}
	if err != nil {
		return err
	}
	return f.write(text, f.path)
}

func (f stateFile) backup() string { return f.path + ".bak" }

// keep makes the present state the backup.
func (f stateFile) keep() error {
	if err := os.Remove(f.backup()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Link(f.path, f.backup())
}

// write replaces a file atomically.
func (f stateFile) write(text []byte, path string) error {
	draft, err := os.CreateTemp(filepath.Dir(f.path), filepath.Base(f.path)+".*.tmp")
	if err != nil {
		return err
	}
	_, err = draft.Write(text)
	if err = errors.Join(err, draft.Close()); err == nil {
		err = os.Rename(draft.Name(), path)
	}
	if err != nil {
		_ = os.Remove(draft.Name())
	}
	return err
}

// compact encodes as the file backend does.
type compact struct{}

func (compact) Marshal(value any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSpace(buffer.Bytes()), err
}

func (compact) Unmarshal(text []byte, value any) error { return json.Unmarshal(text, value) }
