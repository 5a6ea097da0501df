package providers

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	pkghost "github.com/pulumi/pulumi/pkg/v3/host"
	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/env"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// ownerOf is an environment variable that makes this program start a provider from a folder, as an engine does, and wait.
const ownerOf = "RESIDE_TEST_OWNER_OF"

func TestMain(m *testing.M) {
	if folder := os.Getenv(ownerOf); folder != "" {
		runAsEngine(folder)
	}
	os.Exit(m.Run())
}

func runAsEngine(folder string) {
	path, _ := filepath.Abs("../../../.tools/bin/pulumi-resource-kubernetes")
	started, err := booter{folder: folder, guard: filepath.Join(folder, "guard")}.start(
		kubernetesAt(path), plainHost, diagnostics(), diagnostics())
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	fmt.Println(started.pid)
	select {}
}

func kubernetesAt(path string) spec {
	return spec{
		descriptor: workspace.PluginDescriptor{Name: kubernetes, Kind: apitype.ResourcePlugin},
		path:       path, folder: "/", env: env.Global(),
	}
}

func plainHost(ctx context.Context, d, statusD diag.Sink, debug plugin.DebugContext) (plugin.Host, error) {
	return pkghost.New(ctx, d, statusD, debug, nil, nil, nil, nil)
}

func diagnostics() diag.Sink {
	return diag.DefaultSink(io.Discard, io.Discard, diag.FormatOptions{Color: "never"})
}

// tool returns the path of a program in .tools/bin of the checkout; the test fails if it is missing.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../../.tools/bin", name))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%s is missing, run `make tools`: %v", name, err)
	}
	return path
}

// buildGuard builds reside-plugin-guard into a new folder.
func buildGuard(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "guard")
	if output, err := exec.Command("go", "build", "-o", path, "reside.dev/engine/guard").CombinedOutput(); err != nil {
		t.Fatalf("building the guard: %v\n%s", err, output)
	}
	return path
}

func TestARealProviderStartsThroughTheGuardAndEnds(t *testing.T) {
	path := tool(t, "pulumi-resource-kubernetes")
	b := booter{
		folder: filepath.Join(t.TempDir(), "plugins"), guard: buildGuard(t), environment: map[string]string{"GOGC": "51"},
	}
	started, err := b.start(kubernetesAt(path), plainHost, diagnostics(), diagnostics())
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", started.pid))
	if err != nil || filepath.Base(program) != "pulumi-resource-kubernetes" {
		t.Errorf("process %d runs %q: %v", started.pid, program, err)
	}
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", started.pid))
	if err != nil || !strings.Contains("\x00"+string(environment), "\x00GOGC=51\x00") {
		t.Errorf("GOGC is missing in the environment: %v", err)
	}
	if err := started.close(); err != nil {
		t.Error(err)
	}
	select {
	case <-started.exited:
	case <-time.After(deadline):
		t.Error("the process has not ended")
	}
	if left, err := os.ReadDir(b.folder); err != nil || len(left) != 0 {
		t.Errorf("remaining: %v, %v", left, err)
	}
}

func TestARealProviderDiesWithAnEngineThatIsKilled(t *testing.T) {
	tool(t, "pulumi-resource-kubernetes")
	guard := buildGuard(t)
	engine := exec.Command(os.Args[0])
	engine.Env = append(os.Environ(), ownerOf+"="+filepath.Dir(guard))
	output, err := engine.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(output).ReadString('\n')
	provider, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("the engine wrote %q", line)
	}
	if err := engine.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = engine.Wait() // killed
	for end := time.Now().Add(deadline); syscall.Kill(provider, 0) == nil && !zombie(provider); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the provider, process %d, has not ended with its engine", provider)
		}
	}
	if err := (booter{folder: filepath.Dir(guard)}).sweep(); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(guard), "kubernetes-*")); len(left) != 0 {
		t.Errorf("remaining: %v", left)
	}
}

// zombie reports whether a process has ended and was not reaped.
func zombie(pid int) bool {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(content), ") ")
	return strings.HasPrefix(rest, "Z")
}
