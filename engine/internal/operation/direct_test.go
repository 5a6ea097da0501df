package operation

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	pkgresource "github.com/pulumi/pulumi/pkg/v3/resource"
	"github.com/pulumi/pulumi/pkg/v3/resource/deploy"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag/colors"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"

	"reside.dev/engine/internal/wire"
)

// declared runs a command with a program that consists of the stack alone, and returns its reply.
func (m *machine) declared(line string) (stdout string, exit int) {
	m.t.Helper()
	document := `{"resources": [{"type": "pulumi:pulumi:Stack", "name": "declared-dev", "version": "", "inputs": {},` +
		`"secrets": [], "parent": -1, "provider": -1, "custom": false, "after": [], "retain": false, "replace": true,` +
		`"creating": {}}]}`
	var sent bytes.Buffer
	exit, unserved := m.handle(wire.Request{
		Args: strings.Fields(line + " --stack dev --color never --client=stdin:"), Cwd: m.folder, Stdin: document,
	}, wire.NewWriter(&sent), make(chan struct{}, 2))
	for _, line := range strings.Split(strings.TrimSpace(sent.String()), "\n") {
		var reply wire.Reply
		if err := json.Unmarshal([]byte(line), &reply); err != nil {
			m.t.Fatal(err)
		}
		stdout += reply.Stdout
		if reply.Stderr != "" || unserved != "" {
			m.t.Errorf("unexpected %q %q", reply.Stderr, unserved)
		}
	}
	return stdout, exit
}

func TestADeclarationIsAppliedWithItsEventsInTheReply(t *testing.T) {
	m := newMachine(t, "declared")
	m.must("stack init dev")
	for _, op := range []string{"create", "same"} {
		stdout, exit := m.declared("--non-interactive up --yes --skip-preview --event-log reply:")
		if exit != 0 || !strings.Contains(stdout, `{"resourcePreEvent":{"metadata":{"op":"`+op+`"`) {
			t.Errorf("expected the event of %q, got %d %q", op, exit, stdout)
		}
	}
	if state := m.must("stack export --stack dev"); !strings.Contains(state, "declared-dev") {
		t.Errorf("expected the stack in the state, got %s", state)
	}
	if history := m.must("stack history --stack dev --json"); strings.TrimSpace(history) != "[]" {
		t.Errorf("expected no history, got %s", history)
	}
	if m.taken["organization/declared/dev"] != 0 {
		t.Error("expected that the note of the lock is removed")
	}
	if _, exit := m.declared("--non-interactive destroy --yes --skip-preview --run-program --event-log reply:"); exit != 0 {
		t.Errorf("expected that the stack is destroyed, got %d", exit)
	}
}

func TestADeclarationThatWasAppliedLeavesHardlyAnythingInMemory(t *testing.T) {
	const warmUps, applied, most = 20, 200, 9 << 10 // bytes: twice what is left, and half a deployment
	m := newMachine(t, "forgotten")
	m.must("stack init dev")
	apply := func(times int) {
		for range times {
			if _, exit := m.declared("--non-interactive up --yes --skip-preview"); exit != 0 {
				t.Fatalf("expected an apply, got %d", exit)
			}
		}
	}
	apply(warmUps)
	before := inUse()
	apply(applied)
	if left := (inUse() - before) / applied; left > most {
		t.Errorf("expected at most %d bytes of each apply, got %d", most, left)
	}
}

// inUse returns the bytes of memory that are in use.
func inUse() int64 {
	runtime.GC()
	runtime.GC() // frees what the first one has only found, as pools
	var found runtime.MemStats
	runtime.ReadMemStats(&found)
	return int64(found.HeapAlloc + found.StackInuse)
}

func TestAPreviewOfADeclarationChangesNothing(t *testing.T) {
	m := newMachine(t, "previewed")
	m.must("stack init dev")
	before := m.must("stack export --stack dev")
	stdout, exit := m.declared("--non-interactive preview --event-log reply:")
	if exit != 0 || !strings.Contains(stdout, `"op":"create"`) {
		t.Errorf("expected the event of a create, got %d %q", exit, stdout)
	}
	if after := m.must("stack export --stack dev"); after != before {
		t.Errorf("expected the state unchanged, got %s", after)
	}
}

// sourceOf returns a source of the valid declaration, and whether it gives the next resource.
func sourceOf(t *testing.T) *declaredSource {
	t.Helper()
	program, err := parseDeclaration(string(readCases(t).Valid.Document))
	if err != nil {
		t.Fatal(err)
	}
	source := newDeclaredSource(program, "reside")
	if _, err := source.Iterate(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return source
}

func nextOf(t *testing.T, source *declaredSource) deploy.RegisterResourceEvent {
	t.Helper()
	found, err := source.Next()
	if err != nil {
		t.Fatal(err)
	}
	event, ok := found.(deploy.RegisterResourceEvent)
	if !ok {
		t.Fatalf("expected a resource, got %T", found)
	}
	return event
}

func registered(goal *pkgresource.Goal) *deploy.RegisterResult {
	urn := resource.NewURN("demo", "reside", "", goal.Type, goal.Name)
	return &deploy.RegisterResult{State: &pkgresource.State{URN: urn, ID: resource.ID(goal.Name)}}
}

func TestASourceGivesAllResourcesAndThenTheOutputsOfTheStack(t *testing.T) {
	source := sourceOf(t)
	seen := map[string]*pkgresource.Goal{}
	for range source.program.Resources {
		event := nextOf(t, source)
		seen[event.Goal().Name] = event.Goal()
		event.Done(registered(event.Goal()))
	}
	outputs, err := source.Next()
	if err != nil {
		t.Fatal(err)
	}
	event, ok := outputs.(deploy.RegisterResourceOutputsEvent)
	if !ok || event.URN().Name() != "reside-demo" {
		t.Fatalf("expected the outputs of the stack, got %T", outputs)
	}
	event.Done()
	event.Done()
	if end, err := source.Next(); end != nil || err != nil {
		t.Errorf("expected the end, got %v %v", end, err)
	}
	secret := seen["s"]
	data, _ := secret.Properties.GetOk("data")
	if !data.Secret() {
		t.Error("expected that the values of a Secret are secret")
	}
	if !strings.HasSuffix(secret.Provider, "::kubernetes") || secret.CustomTimeouts.Delete != 1 {
		t.Errorf("expected a provider and a timeout, got %q %v", secret.Provider, secret.CustomTimeouts)
	}
	if deps := seen["web"].Dependencies; len(deps) != 1 || deps[0].Name() != "s" {
		t.Errorf("expected that the workload comes after the Secret, got %v", deps)
	}
}

// The engine deletes what a source that ends without an error did not give it.
func TestASourceThatIsClosedEarlyEndsWithAnError(t *testing.T) {
	for count := range len(sourceOf(t).program.Resources) {
		source := sourceOf(t)
		for range count {
			event := nextOf(t, source)
			event.Done(registered(event.Goal()))
		}
		event := nextOf(t, source) // never done: its step failed
		_ = source.Close()
		if end, err := source.Next(); err == nil {
			t.Errorf("expected an error after %s, got %v", event.Goal().Name, end)
		}
	}
}

func TestAResourceThatWasNotRegisteredIsNotFollowed(t *testing.T) {
	source := sourceOf(t)
	nextOf(t, source).Done(&deploy.RegisterResult{Result: deploy.ResultStateFailed})
	_ = source.Close()
	if end, err := source.Next(); err == nil {
		t.Errorf("expected an error, got %v", end)
	}
}

func TestTheStateBeforeStaysAsBackup(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dev.json")
	if err := os.WriteFile(path, []byte("first"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := stateFile{path: path, stack: tokens.QName("organization/declared/dev")}
	before := "first"
	for _, name := range []string{"a", "b"} {
		deployment := apitype.DeploymentV3{Resources: []apitype.ResourceV3{{URN: resource.URN("<" + name + ">")}}}
		if err := file.Save(apitype.TypedDeployment{Deployment: &deployment, Version: 3}); err != nil {
			t.Fatal(err)
		}
		backup, err := os.ReadFile(path + ".bak")
		if err != nil || string(backup) != before {
			t.Errorf("expected %q as backup, got %q %v", before, backup, err)
		}
		now, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(now), "<"+name+">") {
			t.Errorf("expected the new state, got %q %v", now, err)
		}
		before = string(now)
	}
	if left, _ := filepath.Glob(path + ".*.tmp"); len(left) > 0 {
		t.Errorf("expected no drafts, got %v", left)
	}
}

func TestAStateWithoutResourcesIsNoBackup(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dev.json")
	if err := os.WriteFile(path, []byte("first"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := stateFile{path: path, stack: tokens.QName("organization/declared/dev"), first: true}
	if err := file.Save(apitype.TypedDeployment{Deployment: &apitype.DeploymentV3{}, Version: 3}); err != nil {
		t.Fatal(err)
	}
	now, _ := os.ReadFile(path)
	if backup, err := os.ReadFile(path + ".bak"); err != nil || !bytes.Equal(backup, now) || len(now) == 0 {
		t.Errorf("expected a copy of %q as backup, got %q %v", now, backup, err)
	}
	one, _ := os.Stat(path)
	other, _ := os.Stat(path + ".bak")
	if os.SameFile(one, other) {
		t.Error("expected two files: what tears one must not tear the other")
	}
}

func TestTheMessagesOfAnEventLogHaveNoColors(t *testing.T) {
	var written bytes.Buffer
	log := &eventLog{color: colors.Never, writer: &written}
	log.messages().Errorf(diag.Message("urn:x", "refused: %s"), "why")
	log.messages().Debugf(diag.Message("urn:x", "not written"))
	log.status().Infof(diag.Message("urn:x", "not written"))
	if err := log.close(); err != nil {
		t.Fatal(err)
	}
	log.messages().Errorf(diag.Message("urn:x", "too late"))
	expected := `{"diagnosticEvent":{"urn":"urn:x","message":"refused: why\n","severity":"error"}}` + "\n"
	if written.String() != expected {
		t.Errorf("expected %q, got %q", expected, written.String())
	}
}
