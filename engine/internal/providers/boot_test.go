package providers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"context"
	pkghost "github.com/pulumi/pulumi/pkg/v3/host"
	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/env"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

func plainHost(ctx context.Context, d, statusD diag.Sink, debug plugin.DebugContext) (plugin.Host, error) {
	return pkghost.New(ctx, d, statusD, debug, nil, nil, nil, nil)
}

func guard(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "reside-plugin-guard")
	build := exec.Command("go", "build", "-o", path, "reside.dev/engine/guard")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the guard: %v\n%s", err, output)
	}
	return path
}

func discard() diag.Sink { return routing{&process{pool: &Pool{}}, false} }

func TestRealProviderStartsThroughTheGuardAndEnds(t *testing.T) {
	b := booter{folder: filepath.Join(t.TempDir(), "plugins"), guard: guard(t), environment: map[string]string{"GOGC": "50"}}
	path := tool(t, "pulumi-resource-kubernetes")
	begin := time.Now()
	started, err := b.start(spec{
		descriptor: workspace.PluginDescriptor{Name: "kubernetes", Kind: apitype.ResourcePlugin}, path: path, folder: "/",
		env: env.Global(),
	}, plainHost, discard(), discard())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("start", time.Since(begin), started.pid, started.info)
	if exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", started.pid)); filepath.Base(exe) != "pulumi-resource-kubernetes" {
		t.Errorf("process %d runs %s", started.pid, exe)
	}
	begin = time.Now()
	if err := started.close(); err != nil {
		t.Error(err)
	}
	<-started.exited
	fmt.Println("close", time.Since(begin))
	left, _ := os.ReadDir(b.folder)
	if len(left) != 0 {
		t.Errorf("left %v", left)
	}
}
