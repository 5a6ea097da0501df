package providers

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

func TestOneProcessServesConsecutiveAndConcurrentOperations(t *testing.T) {
	s := newFixture(t, Options{})
	first := s.begin("demo")
	process := create(t, first.configured(inputs("a")))
	second := s.begin("other")
	if got := create(t, second.configured(inputs("a"))); got != process {
		t.Errorf("the second operation got process %s, not %s", got, process)
	}
	first.end(Succeeded)
	second.end(Succeeded)
	third := s.begin("demo")
	if got := create(t, third.configured(inputs("a"))); got != process {
		t.Errorf("the third operation got process %s, not %s", got, process)
	}
	third.end(Succeeded)
	kept := s.processes()
	if len(kept) != 1 || len(kept[0].configured) != 1 || kept[0].signals() != 0 || kept[0].ended() {
		t.Errorf("%d processes; the first was configured %d times, signalled %d times, ended: %v",
			len(kept), len(kept[0].configured), kept[0].signals(), kept[0].ended())
	}
	if !first.own.closed {
		t.Error("the host of the operation remains open")
	}
	if status := s.pool.Status(); status[0].Operations != 3 || status[0].State != "ready" || status[0].Users != 0 {
		t.Errorf("status: %+v", status[0])
	}
}

func TestAnotherConfigurationGetsAnotherProcess(t *testing.T) {
	s := newFixture(t, Options{})
	operation := s.begin("demo")
	defer operation.end(Succeeded)
	a, b := operation.configured(inputs("a")), operation.configured(inputs("b"))
	if create(t, a) == create(t, b) {
		t.Error("both configurations use one process")
	}
	secret := resource.PropertyMap{"namespace": resource.MakeSecret(resource.NewProperty("a"))}
	if create(t, operation.configured(secret)) == create(t, a) {
		t.Error("a secret is treated as its plain value, but the provider gets it as a secret")
	}
}

func TestAKubeconfigThatChangesAtTheSamePathGetsAnotherProcess(t *testing.T) {
	for name, named := range map[string]func(t *testing.T, path string) resource.PropertyMap{
		"in the configuration": func(_ *testing.T, path string) resource.PropertyMap {
			return resource.PropertyMap{"kubeconfig": resource.MakeSecret(resource.NewProperty(path))}
		},
		"in the environment": func(t *testing.T, path string) resource.PropertyMap {
			t.Setenv("KUBECONFIG", path)
			return nil
		},
		"in the home folder": func(*testing.T, string) resource.PropertyMap { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, Options{})
			path := filepath.Join(s.folder, ".kube/config")
			certificate := filepath.Join(s.folder, ".kube/ca.crt")
			write(t, path, "clusters: [{cluster: {certificate-authority: ca.crt}}]")
			write(t, certificate, "one")
			configuration := named(t, path)
			processes := map[string]bool{}
			run := func() {
				operation := s.begin("demo")
				processes[create(t, operation.configured(configuration))] = true
				operation.end(Succeeded)
			}
			run()
			run()
			if len(processes) != 1 {
				t.Fatalf("processes of unchanged files: %v", processes)
			}
			write(t, certificate, "two")
			run()
			if len(processes) != 2 {
				t.Errorf("after a change of a certificate that the kubeconfig names, the processes are %v", processes)
			}
			write(t, path, "clusters: []")
			run()
			if len(processes) != 3 {
				t.Errorf("after a change of the kubeconfig, the processes are %v", processes)
			}
		})
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600))
	if err != nil {
		t.Fatal(err)
	}
}

func TestAProcessWithAFailedCallIsRetired(t *testing.T) {
	s := newFixture(t, Options{})
	operation := s.begin("demo")
	provider := operation.configured(inputs("a"))
	create(t, provider)
	s.processes()[0].create = func(plugin.CreateRequest) (plugin.CreateResponse, error) {
		return plugin.CreateResponse{}, errors.New("the cluster is unreachable")
	}
	if _, err := provider.Create(context.Background(), plugin.CreateRequest{URN: urnOf("demo")}); err == nil {
		t.Fatal("no error")
	}
	operation.end(Failed)
	s.eventually("the process ends", s.processes()[0].ended)
	next := s.begin("demo")
	defer next.end(Succeeded)
	if got := create(t, next.configured(inputs("a"))); got != "1001" {
		t.Errorf("the next operation got process %s", got)
	}
}

func TestTheKubernetesProviderCachesUnreachableClustersAndNoRefusals(t *testing.T) {
	for text, want := range map[string]bool{
		"configured Kubernetes cluster is unreachable: unable to load schema information": true,
		`no matches for kind "Widget" in version "example.com/v1"`:                        true,
		"dial tcp 127.0.0.1:6443: connect: connection refused":                            true,
		`ConfigMap "A_B" is invalid: metadata.name: Invalid value`:                        false,
		`Apply failed with 1 conflict: conflict with "kubectl"`:                           false,
	} {
		if got := mayCache(kubernetes, errors.New(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
		if !mayCache("random", errors.New(text)) {
			t.Errorf("for another provider, %s is treated as not cached", text)
		}
	}
}

func TestAFailureOutsideOfAProviderRetiresNoProcess(t *testing.T) {
	s := newFixture(t, Options{})
	operation := s.begin("demo")
	create(t, operation.configured(inputs("a")))
	operation.end(Failed)
	if s.processes()[0].ended() || s.pool.Status()[0].State != "ready" {
		t.Errorf("status: %+v", s.pool.Status())
	}
}

func TestAProviderWithADebuggerIsNotKept(t *testing.T) {
	s := newFixture(t, Options{})
	t.Setenv("PULUMI_DEBUG_PROVIDERS", "kubernetes:12345")
	operation := s.begin("demo")
	defer operation.end(Succeeded)
	if got := create(t, operation.configured(inputs("a"))); got != "1" || len(s.processes()) != 0 {
		t.Errorf("process %s; the pool started %d", got, len(s.processes()))
	}
}

func TestACallThatMayReadFilesUsesAProcessInTheProjectsFolder(t *testing.T) {
	s := newFixture(t, Options{})
	operation := s.begin("demo")
	defer operation.end(Succeeded)
	provider := operation.configured(inputs("a"))
	create(t, provider)
	chart := resource.URN("urn:pulumi:demo::project::kubernetes:helm.sh/v3:Release::chart")
	response, err := provider.Create(context.Background(), plugin.CreateRequest{URN: chart})
	if err != nil || response.ID != "1001" {
		t.Errorf("process %s: %v", response.ID, err)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.folders[0] != "/" || s.folders[1] != s.folder {
		t.Errorf("folders: %v", s.folders)
	}
}

func TestAnInterruptReachesAProcessWithoutOtherUsers(t *testing.T) {
	s := newFixture(t, Options{})
	operation := s.begin("demo")
	create(t, operation.configured(inputs("a")))
	if err := operation.host.SignalCancellation(); err != nil {
		t.Fatal(err)
	}
	if got := s.processes()[0].signals(); got != 1 {
		t.Errorf("it received Cancel %d times", got)
	}
	if !operation.own.cancelled {
		t.Error("the host of the operation was not cancelled")
	}
	operation.end(Cancelled)
	s.eventually("the process ends", s.processes()[0].ended)
}

func TestAnInterruptWaitsForOtherUsersOfTheProcess(t *testing.T) {
	s := newFixture(t, Options{})
	cancelled, other := s.begin("demo"), s.begin("other")
	interrupted, going := cancelled.configured(inputs("a")), other.configured(inputs("a"))
	process := create(t, going)
	if err := cancelled.host.SignalCancellation(); err != nil {
		t.Fatal(err)
	}
	if s.processes()[0].signals() != 0 {
		t.Error("the process received Cancel while another operation uses it")
	}
	if got := create(t, going); got != process {
		t.Errorf("the other operation continues with %s", got)
	}
	_, err := interrupted.Create(context.Background(), plugin.CreateRequest{URN: urnOf("demo")})
	if !errors.Is(err, errCancelled) {
		t.Errorf("a new call of the interrupted operation: %v", err)
	}
	third := s.begin("third")
	if got := create(t, third.configured(inputs("a"))); got == process {
		t.Error("a new operation got the process")
	}
	third.end(Succeeded)
	other.end(Succeeded)
	s.eventually("it gets Cancel when the others have ended", func() bool { return s.processes()[0].signals() == 1 })
	cancelled.end(Cancelled)
	s.eventually("the process ends", s.processes()[0].ended)
}

func TestACallWithoutAResponseEndsWithTheOperationAndItsProcessIsKilled(t *testing.T) {
	s := newFixture(t, Options{})
	operation := s.begin("demo")
	provider := operation.configured(inputs("a"))
	hung := s.processes()[0]
	entered, leave := make(chan struct{}), make(chan struct{})
	defer close(leave)
	hung.create = func(plugin.CreateRequest) (plugin.CreateResponse, error) {
		close(entered)
		<-leave
		return plugin.CreateResponse{}, nil
	}
	answers := make(chan plugin.CreateResponse, 1)
	go func() {
		response, err := provider.Create(context.Background(), plugin.CreateRequest{URN: urnOf("demo")})
		if !errors.Is(err, errCancelled) {
			t.Errorf("the error of the call: %v", err)
		}
		answers <- response
	}()
	<-entered
	operation.end(Cancelled)
	if response := <-answers; response.Status != resource.StatusUnknown {
		t.Errorf("the state of the resource is %v", response.Status)
	}
	s.eventually("the process is killed", func() bool {
		hung.mutex.Lock()
		defer hung.mutex.Unlock()
		return hung.killed
	})
}

func TestACrashFailsTheCallsAndTheNextOperationGetsAnotherProcess(t *testing.T) {
	s := newFixture(t, Options{})
	operation := s.begin("demo")
	provider := operation.configured(inputs("a"))
	crashing := s.processes()[0]
	crashing.create = func(plugin.CreateRequest) (plugin.CreateResponse, error) {
		crashing.end()
		return plugin.CreateResponse{Status: resource.StatusUnknown}, status.Error(codes.Unavailable, "EOF")
	}
	response, err := provider.Create(context.Background(), plugin.CreateRequest{URN: urnOf("demo")})
	if err == nil || !strings.Contains(err.Error(), "the provider kubernetes (process 1000) ended") {
		t.Errorf("error: %v", err)
	}
	if response.Status != resource.StatusUnknown {
		t.Errorf("the state of the resource is %v", response.Status)
	}
	s.eventually("the pool removes it", func() bool { return len(s.pool.Status()) == 0 })
	operation.end(Failed)
	next := s.begin("demo")
	defer next.end(Succeeded)
	if got := create(t, next.configured(inputs("a"))); got != "1001" {
		t.Errorf("the next operation got process %s", got)
	}
}

func TestAProcessThatReachedALimitEndsWhenItsReplacementHasStarted(t *testing.T) {
	for name, grow := range map[string]func(*fixture){
		"memory":     func(s *fixture) { s.memory[1000] = 2 << 20 },
		"operations": func(*fixture) {},
	} {
		t.Run(name, func(t *testing.T) {
			options := Options{MaxRSS: 1 << 20}
			if name == "operations" {
				options.MaxOperations = 1
			}
			s := newFixture(t, options)
			operation := s.begin("demo")
			create(t, operation.configured(inputs("a")))
			grow(s)
			operation.end(Succeeded)
			s.eventually("the old process ends", s.processes()[0].ended)
			if status := s.pool.Status(); len(status) != 1 || status[0].State != "spare" || status[0].PID != 1001 {
				t.Errorf("status: %+v", status)
			}
			next := s.begin("demo")
			defer next.end(Succeeded)
			if got := create(t, next.configured(inputs("a"))); got != "1001" {
				t.Errorf("the next operation got process %s", got)
			}
		})
	}
}

func TestTheProcessThatIsIdleForTheLongestTimeIsRetired(t *testing.T) {
	s := newFixture(t, Options{MaxProcesses: 2})
	for _, namespace := range []string{"a", "b", "c"} {
		operation := s.begin("demo")
		create(t, operation.configured(inputs(namespace)))
		s.mutex.Lock()
		s.now = s.now.Add(time.Minute)
		s.mutex.Unlock()
		operation.end(Succeeded)
	}
	s.eventually("the first ends", s.processes()[0].ended)
	if s.processes()[1].ended() || s.processes()[2].ended() {
		t.Error("another process ended")
	}
}

func TestParametersAndUnknownConfigurationsGetAProcessOfTheirOwn(t *testing.T) {
	s := newFixture(t, Options{})
	operation := s.begin("demo")
	defer operation.end(Succeeded)
	unknown := resource.PropertyMap{"namespace": resource.MakeComputed(resource.NewProperty(""))}
	if got := create(t, operation.configured(unknown)); got != "1" {
		t.Errorf("a configuration with unknown values got process %s", got)
	}
	provider := operation.provider()
	_, err := provider.Parameterize(context.Background(), plugin.ParameterizeRequest{})
	if err != nil && len(operation.own.own) != 2 {
		t.Errorf("parameters: %v, own providers: %d", err, len(operation.own.own))
	}
	if got := create(t, provider); got != "1" {
		t.Errorf("a provider with parameters uses process %s", got)
	}
	if kept := s.processes()[0]; len(kept.configured) != 0 {
		t.Error("the kept process was configured")
	}
}

func TestAMessageGoesToTheOperationOfItsResource(t *testing.T) {
	s := newFixture(t, Options{})
	demo, other := s.begin("demo"), s.begin("other")
	create(t, demo.configured(inputs("a")))
	create(t, other.configured(inputs("a")))
	demo.said.lines, other.said.lines = nil, nil // messages of the search for the plugin
	s.messages[0].Logf(diag.Warning, diag.Message(urnOf("demo"), "about demo"))
	s.messages[0].Infof(diag.Message("", "about all"))
	demo.end(Succeeded)
	s.messages[0].Logf(diag.Warning, diag.Message(urnOf("demo"), "too late"))
	other.end(Succeeded)
	if got := strings.Join(demo.said.lines, ", "); got != "warning: about demo, info: about all" {
		t.Errorf("demo got: %s", got)
	}
	if got := strings.Join(other.said.lines, ", "); got != "info: about all" {
		t.Errorf("other got: %s", got)
	}
}

func TestAClosedPoolEndsItsProcessesAndStartsNoMore(t *testing.T) {
	s := newFixture(t, Options{})
	operation := s.begin("demo")
	provider := operation.configured(inputs("a"))
	create(t, provider)
	s.pool.Close()
	if !s.processes()[0].ended() {
		t.Error("a process was not closed")
	}
	late := s.begin("late")
	if _, err := late.host.Provider(late.ctx, provider.(*proxy).descriptor, provider.(*proxy).env); err == nil {
		t.Error("a closed pool returned a provider")
	}
	operation.end(Succeeded)
	late.end(Succeeded)
}
