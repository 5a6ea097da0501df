package providers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/blang/semver"

	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/env"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// deadline is how long a test waits for an expected event.
const deadline = 20 * time.Second

// fakeProvider replaces the process of a provider.
type fakeProvider struct {
	plugin.UnimplementedProvider
	pid    int
	exited chan struct{}

	mutex      sync.Mutex
	configured []resource.PropertyMap
	signalled  int
	closed     int
	killed     bool
	create     func(plugin.CreateRequest) (plugin.CreateResponse, error)
	checks     int
	diffs      int
	check      func(plugin.CheckRequest) (plugin.CheckResponse, error)
}

func (f *fakeProvider) Check(_ context.Context, request plugin.CheckRequest) (plugin.CheckResponse, error) {
	f.checks++
	if f.check != nil {
		return f.check(request)
	}
	return plugin.CheckResponse{Properties: request.News}, nil
}

func (f *fakeProvider) Diff(_ context.Context, request plugin.DiffRequest) (plugin.DiffResponse, error) {
	f.diffs++
	if request.OldInputs.DeepEquals(request.NewInputs) {
		return plugin.DiffResponse{Changes: plugin.DiffNone}, nil
	}
	return plugin.DiffResponse{Changes: plugin.DiffSome, ChangedKeys: []resource.PropertyKey{"data"}}, nil
}

func (f *fakeProvider) GetPluginInfo(context.Context) (plugin.PluginInfo, error) {
	version := semver.MustParse("4.25.0")
	return plugin.PluginInfo{Version: &version}, nil
}

func (f *fakeProvider) Configure(
	_ context.Context, request plugin.ConfigureRequest,
) (plugin.ConfigureResponse, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.configured = append(f.configured, request.Inputs)
	return plugin.ConfigureResponse{}, nil
}

func (f *fakeProvider) Create(_ context.Context, request plugin.CreateRequest) (plugin.CreateResponse, error) {
	if f.create != nil {
		return f.create(request)
	}
	return plugin.CreateResponse{ID: resource.ID(fmt.Sprint(f.pid)), Status: resource.StatusOK}, nil
}

func (f *fakeProvider) SignalCancellation(context.Context) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.signalled++
	return nil
}

func (f *fakeProvider) end() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.closed++
	if f.closed == 1 {
		close(f.exited)
	}
}

func (f *fakeProvider) signals() int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.signalled
}

func (f *fakeProvider) ended() bool {
	select {
	case <-f.exited:
		return true
	default:
		return false
	}
}

// fixture is a pool of fake processes with the environment of an operation.
type fixture struct {
	t      *testing.T
	pool   *Pool
	folder string

	mutex    sync.Mutex
	started  []*fakeProvider
	folders  []string
	messages []diag.Sink
	memory   map[int]int64
	now      time.Time
}

func newFixture(t *testing.T, options Options) *fixture {
	t.Helper()
	s := &fixture{t: t, folder: t.TempDir(), memory: map[int]int64{}, now: time.Now()}
	program := filepath.Join(s.folder, "pulumi-resource-kubernetes")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", s.folder)
	t.Setenv("HOME", s.folder)
	t.Setenv("KUBECONFIG", "")
	s.pool = newPool(options, s.start, s.rss, s.clock)
	t.Cleanup(s.pool.Close)
	return s
}

func (s *fixture) start(required spec, _ hostMaker, messages, _ diag.Sink) (*running, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	made := &fakeProvider{pid: 1000 + len(s.started), exited: make(chan struct{})}
	s.started = append(s.started, made)
	s.folders = append(s.folders, required.folder)
	s.messages = append(s.messages, messages)
	info, err := made.GetPluginInfo(context.Background())
	return &running{
		Provider: made, info: info, pid: made.pid, exited: made.exited,
		close: func() error { made.end(); return nil },
		kill: func() {
			made.mutex.Lock()
			defer made.mutex.Unlock()
			made.killed = true
		},
	}, err
}

func (s *fixture) rss(pid int) int64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.memory[pid]
}

func (s *fixture) clock() time.Time {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.now
}

// processes returns all processes that were started, oldest first.
func (s *fixture) processes() []*fakeProvider {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return append([]*fakeProvider(nil), s.started...)
}

// eventually waits for a condition that other goroutines fulfil.
func (s *fixture) eventually(what string, condition func() bool) {
	s.t.Helper()
	for end := time.Now().Add(deadline); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("never: %s; the pool: %+v", what, s.pool.Status())
		}
	}
}

// operation is one run of an engine on a stack.
type operation struct {
	fixture *fixture
	lease   *Lease
	host    plugin.Host
	ctx     *plugin.Context
	said    *recorder
	own     *innerHost
}

func (s *fixture) begin(stack string) *operation {
	s.t.Helper()
	o := &operation{fixture: s, lease: s.pool.Begin("project", stack), said: &recorder{}}
	o.own = &innerHost{fixture: s}
	factory := o.lease.HostFactory(func(context.Context, diag.Sink, diag.Sink, plugin.DebugContext) (plugin.Host, error) {
		return o.own, nil
	})
	var err error
	if o.host, err = factory(context.Background(), o.said, o.said, nil); err != nil {
		s.t.Fatal(err)
	}
	o.ctx, err = plugin.NewContextWithHost(context.Background(), o.said, o.said, o.host, s.folder, s.folder, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return o
}

// provider returns the provider that the engine gets, unconfigured.
func (o *operation) provider() plugin.Provider {
	o.fixture.t.Helper()
	version := semver.MustParse("4.25.0")
	got, err := o.host.Provider(o.ctx, workspace.PluginDescriptor{
		Name: kubernetes, Kind: apitype.ResourcePlugin, Version: &version,
	}, env.Global())
	if err != nil {
		o.fixture.t.Fatal(err)
	}
	return got
}

// configured returns a provider with this configuration.
func (o *operation) configured(inputs resource.PropertyMap) plugin.Provider {
	o.fixture.t.Helper()
	got := o.provider()
	if _, err := got.Configure(context.Background(), plugin.ConfigureRequest{Inputs: inputs}); err != nil {
		o.fixture.t.Fatal(err)
	}
	return got
}

// end ends the operation as the engine does: it closes context and host, and ends the lease.
func (o *operation) end(outcome Outcome) {
	o.fixture.t.Helper()
	if err := errors.Join(o.ctx.Close(), o.host.Close()); err != nil {
		o.fixture.t.Error(err)
	}
	o.lease.End(outcome)
}

// create creates a resource, and returns which process did it.
func create(t *testing.T, provider plugin.Provider) string {
	t.Helper()
	response, err := provider.Create(context.Background(), plugin.CreateRequest{URN: urnOf("demo")})
	if err != nil {
		t.Fatal(err)
	}
	return string(response.ID)
}

func urnOf(stack string) resource.URN {
	return resource.URN("urn:pulumi:" + stack + "::project::kubernetes:core/v1:ConfigMap::thing")
}

func inputs(namespace string) resource.PropertyMap {
	return resource.PropertyMap{"namespace": resource.NewProperty(namespace)}
}

// recorder is a diagnostics sink that records the messages.
type recorder struct {
	diag.Sink
	mutex sync.Mutex
	lines []string
}

func (r *recorder) Logf(severity diag.Severity, message *diag.Diag, _ ...any) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.lines = append(r.lines, string(severity)+": "+message.Message)
}

func (r *recorder) Warningf(message *diag.Diag, args ...any) { r.Logf(diag.Warning, message, args...) }

// innerHost replaces the stock host.
type innerHost struct {
	plugin.Host
	fixture   *fixture
	own       []*fakeProvider
	closed    bool
	cancelled bool
}

func (h *innerHost) Loader(*plugin.Context) (*plugin.GrpcServer, error)   { return nil, nil }
func (h *innerHost) Mapper(*plugin.Context) (*plugin.GrpcServer, error)   { return nil, nil }
func (h *innerHost) Resolver(*plugin.Context) (*plugin.GrpcServer, error) { return nil, nil }
func (h *innerHost) AttachDebugger(plugin.DebugSpec) bool                 { return false }
func (h *innerHost) ReleaseContext(*plugin.Context) error                 { return nil }
func (h *innerHost) SignalCancellation() error                            { h.cancelled = true; return nil }
func (h *innerHost) Close() error                                         { h.closed = true; return nil }

func (h *innerHost) Provider(*plugin.Context, workspace.PluginDescriptor, env.Env) (plugin.Provider, error) {
	made := &fakeProvider{pid: 1, exited: make(chan struct{})}
	h.own = append(h.own, made)
	return made, nil
}
