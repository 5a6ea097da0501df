package operation

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestAllCommandsOnOneStack(t *testing.T) {
	machine := newMachine(t, "life")
	address := (&program{components: 2}).serve(t)
	up := "--non-interactive up --yes --skip-preview --stack dev --client=" + address

	machine.must("stack init dev")
	if text := machine.must("preview --stack dev --client=" + address); !strings.Contains(text, "Previewing update (dev):") ||
		!strings.Contains(text, "+ 3 to create") {
		t.Error(text)
	}
	if text := machine.must(up); !strings.HasPrefix(text, "Updating (dev):\n") || !strings.Contains(text, "+ 3 created") {
		t.Error(text)
	}
	if text := machine.must(up + " --expect-no-changes"); !strings.Contains(text, "3 unchanged") {
		t.Error(text)
	}
	if text := machine.must("stack output --json --stack dev"); text != "{\n  \"count\": 2,\n  \"secret\": \"[secret]\"\n}\n" {
		t.Error(text)
	}
	if text := machine.must("stack output secret --json --show-secrets --stack dev"); text != "\"hush\"\n" {
		t.Error(text)
	}
	var entries []struct {
		Kind, Result    string
		Environment     map[string]string
		ResourceChanges map[string]int
	}
	if err := json.Unmarshal([]byte(machine.must("stack history --json --show-secrets --stack dev")), &entries); err != nil {
		t.Fatal(err)
	}
	if len(entries) != 2 || entries[0].ResourceChanges["same"] != 3 || entries[1].Result != "succeeded" ||
		entries[0].Environment["pulumi.flag.expect-no-changes"] != "true" || entries[0].Environment["runtime.version"] != "7" {
		t.Errorf("%+v", entries)
	}
	if text := machine.must("refresh --yes --skip-preview --stack dev"); !strings.HasPrefix(text, "Refreshing (dev):\n") {
		t.Error(text)
	}
	state := machine.must("stack export --stack dev")
	if strings.Contains(state, "hush") || !strings.Contains(state, "test:index:Component") {
		t.Error(state)
	}
	if text := machine.must("stack export --show-secrets --stack dev"); !strings.Contains(text, "hush") {
		t.Error(text)
	}
	if err := os.WriteFile(filepath.Join(machine.folder, "state.json"), []byte(state), 0o600); err != nil {
		t.Fatal(err)
	}
	if text := machine.must("stack import --file state.json --stack dev"); text != "Import complete.\n" {
		t.Error(text)
	}
	if text := machine.must("destroy --yes --skip-preview --stack dev"); !strings.Contains(text, "- 3 deleted") ||
		!strings.Contains(text, "run `pulumi stack rm dev`") {
		t.Error(text)
	}
	if text := machine.must("stack rm --yes dev"); text != "Stack 'dev' has been removed!\n" {
		t.Error(text)
	}
	if result := machine.run("stack select dev"); result.exit != 6 || result.stderr != "error: no stack named 'dev' found\n" {
		t.Errorf("%+v", result)
	}
	if left, err := filepath.Glob(filepath.Join(machine.folder, "Pulumi.dev.yaml")); len(left) > 0 || err != nil {
		t.Error("the settings are still there", err)
	}
	for stack, count := range machine.taken {
		if count != 0 {
			t.Errorf("%s is noted as locked", stack)
		}
	}
}

func TestAnUpdateMayBeginWithAPreview(t *testing.T) {
	machine := newMachine(t, "first")
	machine.must("stack init dev")
	text := machine.must("up --yes --stack dev --client=" + (&program{}).serve(t))
	if preview, update := strings.Index(text, "Previewing update (dev):"), strings.Index(text, "Updating (dev):"); preview != 0 || update < 10 {
		t.Error(text)
	}
}

func TestAProgramLearnsThatItsDebugMessagesAreNotUsed(t *testing.T) {
	machine := newMachine(t, "debug")
	machine.must("stack init dev")
	for flags, used := range map[string]bool{
		"": false, "--diff": false, "--debug": true, "--event-log=" + filepath.Join(t.TempDir(), "events"): true,
	} {
		asked := &program{}
		machine.must("preview --stack dev --client=" + asked.serve(t) + " " + flags)
		if asked.debugUnused == used {
			t.Errorf("with %q: %t", flags, asked.debugUnused)
		}
	}
}

func TestAProgramThatFails(t *testing.T) {
	machine := newMachine(t, "fails")
	machine.must("stack init dev")
	result := machine.run("up --yes --skip-preview --stack dev --client=" + (&program{fails: "it broke"}).serve(t))
	if result.exit != 1 || !strings.Contains(result.stdout, "it broke") || result.stderr != "" {
		t.Errorf("%+v", result)
	}
	machine.must("up --yes --skip-preview --stack dev --client=" + (&program{}).serve(t))
}

func TestAProgramThatDoesNotListen(t *testing.T) {
	machine := newMachine(t, "absent")
	machine.must("stack init dev")
	result := machine.run("up --yes --skip-preview --stack dev --client=127.0.0.1:1")
	if result.exit == 0 || !strings.Contains(result.stdout+result.stderr, "connection refused") {
		t.Errorf("%+v", result)
	}
}

func TestAProgramThatHangsIsInterrupted(t *testing.T) {
	machine := newMachine(t, "hangs")
	machine.must("stack init dev")
	interrupts := make(chan struct{}, 2)
	hangs := &program{running: func(ctx context.Context) error {
		interrupts <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}}
	result := machine.runWith("up --yes --skip-preview --stack dev --client="+hangs.serve(t), interrupts)
	if result.exit == 0 || !strings.Contains(result.stdout, "^C received; cancelling") {
		t.Errorf("%+v", result)
	}
	machine.must("up --yes --skip-preview --stack dev --client=" + (&program{}).serve(t))
}

func TestASecondOperationOnAStackIsRefused(t *testing.T) {
	machine := newMachine(t, "one")
	machine.must("stack init dev")
	other := (&program{}).serve(t)
	var second outcome
	slow := &program{running: func(context.Context) error {
		second = machine.run("up --yes --skip-preview --stack dev --client=" + other)
		return nil
	}}
	machine.must("up --yes --skip-preview --stack dev --client=" + slow.serve(t))
	if second.exit != 1 || second.stdout != "" || !strings.Contains(second.stderr,
		fmt.Sprintf("(pid %d)", os.Getpid())) || !strings.HasPrefix(second.stderr, "error: the stack is currently locked by 1 lock(s).") {
		t.Errorf("%+v", second)
	}
}

func TestConcurrentOperationsOnManyStacks(t *testing.T) {
	machine := newMachine(t, "many")
	var all sync.WaitGroup
	for index := range 6 {
		all.Go(func() {
			stack := fmt.Sprint("s", index)
			address := (&program{components: index}).serve(t)
			machine.must("stack init " + stack)
			for range 2 {
				text := machine.must("up --yes --skip-preview --stack " + stack + " --client=" + address)
				if !strings.Contains(text, "("+stack+")") {
					t.Error(text)
				}
			}
			if text := machine.must("stack output count --json --stack " + stack); text != fmt.Sprintln(index) {
				t.Error(text)
			}
			machine.must("destroy --yes --skip-preview --remove --stack " + stack)
		})
	}
	all.Wait()
}

func TestErrors(t *testing.T) {
	machine := newMachine(t, "errors")
	machine.must("stack init dev")
	address := (&program{}).serve(t)
	for line, want := range map[string]string{
		"up --stack dev --client=" + address:                         "2 error: --yes or --skip-preview or --preview-only must be passed in to proceed when running in non-interactive mode\n",
		"refresh --stack dev":                                        "1 error: --yes or --skip-preview or --preview-only must be passed in to proceed when running in non-interactive mode\n",
		"refresh --yes --preview-only --stack dev":                   "1 error: --yes and --preview-only cannot be used together\n",
		"destroy --skip-preview --preview-only --stack dev":          "1 error: --skip-preview and --preview-only cannot be used together\n",
		"up -y -f --refresh=perhaps --stack dev --client " + address: "1 error: unable to determine value for --refresh\n",
		"up -y -f --stack nope --client " + address:                  "6 error: no stack named 'nope' found\n",
		"stack init dev":                       "1 error: stack 'organization/errors/dev' already exists\n",
		"stack init":                           "1 error: missing stack name\n",
		"stack init x --secrets-provider nope": "1 error: unknown secrets provider type 'nope' (supported values: default,passphrase,awskms,azurekeyvault,gcpkms,hashivault)\n",
		"stack init x --stack y":               "1 error: only one of --stack or argument stack name may be specified, not both\n",
		"stack rm dev":                         "1 error: non-interactive mode requires --yes flag\n",
		"stack output nope --json --stack dev": "1 error: current stack does not have output property 'nope'\n",
		"version -C nowhere":                   "1 error: chdir " + machine.folder + "/nowhere: no such file or directory\n",
		"cancel --stack nope":                  "6 error: no stack named 'nope' found\n",
	} {
		result := machine.run(line)
		if got := fmt.Sprint(result.exit, " ", result.stderr); got != want || result.unserved != "" {
			t.Errorf("%s:\n%q\n%q %s", line, got, want, result.unserved)
		}
	}
}

func TestAnUnservedCommandHasNotBegun(t *testing.T) {
	machine := newMachine(t, "left")
	t.Setenv("PULUMI_BACKEND_URL", "https://api.example.com")
	for _, line := range []string{"config set a b", "stack init dev", "up --yes --client=127.0.0.1:1 --stack dev"} {
		if result := machine.run(line); result.unserved == "" || result.begun {
			t.Errorf("%s: %+v", line, result)
		}
	}
	t.Setenv("PULUMI_OPTION_STACK", "dev")
	if result := machine.run("version"); !strings.Contains(result.unserved, "PULUMI_OPTION_STACK") {
		t.Errorf("%+v", result)
	}
}

func TestTheSelectedStackIsTheDefault(t *testing.T) {
	machine := newMachine(t, "selected")
	machine.must("stack init one")
	machine.must("stack init two")
	machine.must("stack select one")
	text := machine.must("up --yes --skip-preview --client=" + (&program{}).serve(t))
	if !strings.HasPrefix(text, "Updating (one):") {
		t.Error(text)
	}
}

func TestTheWorkingDirectoryHasNoSymbolicLinks(t *testing.T) {
	machine := newMachine(t, "linked")
	machine.must("stack init dev") // selects it, for this folder
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(machine.folder, link); err != nil {
		t.Fatal(err)
	}
	machine.folder = link
	if text := machine.must("up --yes --skip-preview --client=" + (&program{}).serve(t)); !strings.HasPrefix(text, "Updating (dev):") {
		t.Error(text)
	}
}

func TestAnAssetsPathIsRelativeToTheWorkingDirectory(t *testing.T) {
	machine := newMachine(t, "assets")
	if err := os.WriteFile(filepath.Join(machine.folder, "page.html"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	machine.must("stack init dev")
	machine.must("up --yes --skip-preview --stack dev --client=" + (&program{file: "page.html"}).serve(t))
	const hash = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
	if state := machine.must("stack export --stack dev"); !strings.Contains(state, hash) || !strings.Contains(state, `"path": "page.html"`) {
		t.Error(state)
	}
}
