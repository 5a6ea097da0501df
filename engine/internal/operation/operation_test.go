package operation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/util/cmdutil"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"

	"reside.dev/engine/internal/providers"
	"reside.dev/engine/internal/wire"
)

// These tests run the complete engine, without the socket, on a backend of their own.
func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "operation")
	if err != nil {
		panic(err)
	}
	for name, value := range map[string]string{
		"PULUMI_BACKEND_URL":       "file://" + folder,
		"PULUMI_HOME":              filepath.Join(folder, "home"),
		"PULUMI_CONFIG_PASSPHRASE": "a passphrase",
		"PULUMI_DEBUG_COMMANDS":    "true",
	} {
		os.Setenv(name, value)
	}
	cmdutil.DisableInteractive = true
	slog.SetDefault(slog.New(slog.DiscardHandler))
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

// program is a Pulumi program with a language runtime of its own.
type program struct {
	pulumirpc.UnimplementedLanguageRuntimeServer
	components  int
	file        string                      // a file that the stack's resource has as an asset
	running     func(context.Context) error // called while it runs, if it is set
	fails       string
	debugUnused bool // whether the engine's request said that debug messages are not used
}

func (p *program) GetPluginInfo(context.Context, *emptypb.Empty) (*pulumirpc.PluginInfo, error) {
	return &pulumirpc.PluginInfo{}, nil
}

func (p *program) GetRequiredPackages(
	context.Context, *pulumirpc.GetRequiredPackagesRequest,
) (*pulumirpc.GetRequiredPackagesResponse, error) {
	return &pulumirpc.GetRequiredPackagesResponse{}, nil
}

func (p *program) About(ctx context.Context, _ *pulumirpc.AboutRequest) (*pulumirpc.AboutResponse, error) {
	p.debugUnused = slices.Equal(metadata.ValueFromIncomingContext(ctx, debugUnused[0]), debugUnused[1:])
	return &pulumirpc.AboutResponse{Executable: "a test", Version: "7"}, nil
}

func (p *program) Run(ctx context.Context, request *pulumirpc.RunRequest) (*pulumirpc.RunResponse, error) {
	connection, err := grpc.NewClient(request.MonitorAddress, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	monitor := pulumirpc.NewResourceMonitorClient(connection)
	inputs, err := structpb.NewStruct(map[string]any{})
	if err == nil && p.file != "" {
		inputs, err = structpb.NewStruct(map[string]any{"file": map[string]any{
			"4dabf18193072939515e22adb298388d": "c44067f5952c0a294b673a41bacd8c17", "path": p.file,
		}})
	}
	if err != nil {
		return nil, err
	}
	stack, err := monitor.RegisterResource(ctx, &pulumirpc.RegisterResourceRequest{
		Type: "pulumi:pulumi:Stack", Name: request.Project + "-" + request.Stack, Object: inputs,
	})
	if err != nil {
		return nil, err
	}
	for index := range p.components {
		if _, err := monitor.RegisterResource(ctx, &pulumirpc.RegisterResourceRequest{
			Type: "test:index:Component", Name: fmt.Sprint("c", index), Parent: stack.Urn,
		}); err != nil {
			return nil, err
		}
	}
	if p.running != nil {
		if err := p.running(ctx); err != nil {
			return nil, err
		}
	}
	outputs, err := structpb.NewStruct(map[string]any{"count": p.components, "secret": map[string]any{
		"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "value": "hush",
	}})
	if err != nil {
		return nil, err
	}
	if _, err := monitor.RegisterResourceOutputs(ctx, &pulumirpc.RegisterResourceOutputsRequest{
		Urn: stack.Urn, Outputs: outputs,
	}); err != nil {
		return nil, err
	}
	return &pulumirpc.RunResponse{Error: p.fails}, nil
}

func (p *program) serve(t testing.TB) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pulumirpc.RegisterLanguageRuntimeServer(server, p)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

// machine runs commands, as the engine does for its clients.
type machine struct {
	t      testing.TB
	handle func(request wire.Request, writer *wire.Writer, interrupts <-chan struct{}) (exit int, unserved string)
	folder string

	mutex sync.Mutex
	taken map[string]int
}

func newMachine(t testing.TB, project string) *machine {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "Pulumi.yaml"), []byte("name: "+project+"\nruntime: python\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pool := providers.NewPool(providers.Options{Folder: filepath.Join(folder, "plugins"), Guard: "/nonexistent"})
	t.Cleanup(pool.Close)
	made := &machine{t: t, folder: folder, taken: map[string]int{}}
	handle := Handler(Shared{
		Begin:    func(project, stack string) Lease { return pool.Begin(project, stack) },
		NoteLock: made.take,
	})
	made.handle = func(request wire.Request, writer *wire.Writer, interrupts <-chan struct{}) (int, string) {
		answer := handle(request, writer, interrupts)
		return answer.Exit, answer.Unserved
	}
	return made
}

func (m *machine) take(_, stack string) func() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.taken[stack]++
	return func() {
		m.mutex.Lock()
		defer m.mutex.Unlock()
		m.taken[stack]--
	}
}

type outcome struct {
	exit             int
	unserved         string
	stdout, stderr   string
	begun, saidBegun bool
}

func (m *machine) run(line string) outcome { return m.runWith(line, make(chan struct{}, 2)) }

func (m *machine) runWith(line string, interrupts <-chan struct{}) outcome {
	m.t.Helper()
	var sent bytes.Buffer
	writer := wire.NewWriter(&sent)
	var result outcome
	result.exit, result.unserved = m.handle(wire.Request{Args: strings.Fields(line), Cwd: m.folder}, writer, interrupts)
	for _, line := range strings.Split(strings.TrimSpace(sent.String()), "\n") {
		var reply wire.Reply
		if line == "" {
			continue
		}
		if err := json.Unmarshal([]byte(line), &reply); err != nil {
			m.t.Error(err)
		}
		result.begun = result.begun || reply.Begun
		result.stdout += reply.Stdout
		result.stderr += reply.Stderr
	}
	return result
}

// must runs a command that must succeed, and returns its output.
func (m *machine) must(line string) string {
	m.t.Helper()
	result := m.run(line)
	if result.exit != 0 || result.unserved != "" || result.stderr != "" && !strings.Contains(line, "stack init") {
		m.t.Errorf("%s: %+v", line, result)
	}
	return result.stdout
}
