package operation

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/pulumi/pulumi/pkg/v3/backend"
	"github.com/pulumi/pulumi/pkg/v3/backend/diy"
	cmdbackend "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi/backend"
	pkgworkspace "github.com/pulumi/pulumi/pkg/v3/workspace"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag/colors"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"

	"reside.dev/engine/internal/command"
)

// logins opens the backend for one command. Only files and object stores are served. The CLI's own login manager would
// also write to the standard error of the process.
type logins struct{ sink diag.Sink }

var _ cmdbackend.LoginManager = logins{}

func (l logins) Login(
	ctx context.Context, _ pkgworkspace.Context, _ diag.Sink, url string, project *workspace.Project,
	_, _ bool, _ colors.Colorization,
) (backend.Backend, error) {
	return l.open(ctx, url, project)
}

func (l logins) Current(
	ctx context.Context, _ pkgworkspace.Context, _ diag.Sink, url string, project *workspace.Project, _ bool,
) (backend.Backend, error) {
	return l.open(ctx, url, project)
}

func (l logins) LoginFromAuthContext(
	ctx context.Context, _ diag.Sink, url string, project *workspace.Project, _, _ bool, _ workspace.AuthContext,
) (backend.Backend, error) {
	return l.open(ctx, url, project)
}

// creating is held while an empty file backend is opened. Opening it writes its description. Pulumi's storage library
// does not write the attributes of that file atomically, so a concurrent reader could fail ("EOF").
var creating sync.Mutex

func (l logins) open(ctx context.Context, url string, project *workspace.Project) (backend.Backend, error) {
	if !diy.IsDIYBackendURL(url) {
		return nil, command.Unserved{Why: "only file and object-store backends are served"}
	}
	if path, isFile := strings.CutPrefix(url, diy.FilePathPrefix); isFile {
		if !filepath.IsAbs(path) && path[:min(1, len(path))] != "~" {
			return nil, command.Unserved{Why: "a file backend is served with an absolute path only"}
		}
		folder, _, _ := strings.Cut(path, "?")
		if _, err := os.Stat(filepath.Join(folder, workspace.BookkeepingDir, "meta.yaml")); err != nil {
			creating.Lock()
			defer creating.Unlock()
		}
	}
	opened, err := diy.New(ctx, l.sink, url, project)
	if err != nil {
		return nil, err
	}
	return opened, nil
}
