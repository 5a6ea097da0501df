package command

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// The Automation API sets this variable for each command of a stack. It enables the flag --event-log.
func TestMain(m *testing.M) {
	os.Setenv("PULUMI_DEBUG_COMMANDS", "true")
	os.Exit(m.Run())
}

func fields(line string) []string { return strings.Fields(line) }

func TestServesWhatTheAutomationAPISends(t *testing.T) {
	for line, verb := range map[string]Verb{
		"--non-interactive up --yes --skip-preview --client=127.0.0.1:4000 --exec-kind auto.inline --stack dev":               Up,
		"--non-interactive up --yes --skip-preview --message m --expect-no-changes --diff --replace u --target t":             Up,
		"--non-interactive up --yes --skip-preview --target-dependents --parallel 4 --color always --debug":                   Up,
		"--non-interactive up --yes --skip-preview --suppress-outputs --suppress-progress --continue-on-error --refresh":      Up,
		"--non-interactive up --yes --skip-preview --config-file f --run-program=true --event-log tcp://127.0.0.1:4001":       Up,
		"--non-interactive up --yes --skip-preview --exclude e --exclude-dependents":                                          Up,
		"--non-interactive preview --client=127.0.0.1:4000 --exec-kind auto.inline --event-log tcp://127.0.0.1:1 --stack dev": Preview,
		"--non-interactive refresh --skip-preview --yes --exec-kind auto.inline --event-log /tmp/events --stack dev":          Refresh,
		"--non-interactive refresh --preview-only --exec-kind auto.inline --stack dev":                                        Refresh,
		"--non-interactive refresh --skip-preview --yes --clear-pending-creates --stack dev":                                  Refresh,
		"--non-interactive refresh --skip-preview --yes --run-program=false --stack dev":                                      Refresh,
		"--non-interactive destroy --skip-preview --yes --exec-kind auto.inline --stack dev":                                  Destroy,
		"--non-interactive destroy --skip-preview --yes --remove --stack dev":                                                 Destroy,
		"--non-interactive destroy --preview-only --stack dev":                                                                Destroy,
		"--non-interactive stack init dev":                                                         New,
		"--non-interactive stack init dev --secrets-provider passphrase":                           New,
		"--non-interactive stack select --stack dev":                                               Select,
		"--non-interactive stack output --json --stack dev":                                        Output,
		"--non-interactive stack output --json --show-secrets --stack dev":                         Output,
		"--non-interactive stack history --json --show-secrets --page-size 1 --page 1 --stack dev": History,
		"--non-interactive stack export --show-secrets --stack dev":                                Export,
		"--non-interactive stack import --file /tmp/state --stack dev":                             Import,
		"--non-interactive stack rm --yes --force dev":                                             Remove,
		"--non-interactive stack rm --yes --preserve-config dev":                                   Remove,
		"--non-interactive cancel --yes --stack dev":                                               Cancel,
		"--non-interactive version":                                                                Version,
		"-C /elsewhere --non-interactive version":                                                  Version,
	} {
		if verb == Up && !strings.Contains(line, "--client") {
			line += " --client=127.0.0.1:4000"
		}
		command, err := Parse(fields(line))
		if err != nil || command.Verb != verb {
			t.Errorf("%s: %q, %v", line, command.Verb, err)
		}
	}
}

func TestLeavesTheRestToTheCLI(t *testing.T) {
	for _, line := range []string{
		"",
		"up --yes --skip-preview",
		"up --yes --skip-preview --client=1 --json",
		"up --yes --skip-preview --client=1 --plan p",
		"up --yes --skip-preview --client=1 --policy-pack p",
		"up --yes --skip-preview --client=1 --config a=b",
		"up --yes --skip-preview --client=1 --attach-debugger",
		"up --yes --skip-preview --client=1 --suppress-permalink=false",
		"up --yes --skip-preview --client=1 --logtostderr --verbose 9",
		"up --yes --skip-preview --client=1 --tracing file:/t",
		"up --yes --skip-preview --client=1 --remote",
		"up --client=1 template",
		"up --client=1 --target a --exclude b",
		"up --client=1 --no-such-flag",
		"up --client=1 --parallel many",
		"up --client=1 --color pink",
		"up --help",
		"preview --client=1 --json",
		"preview --client=1 --save-plan p",
		"preview --client=1 --import-file f",
		"refresh --yes --run-program=true",
		"destroy --yes --exclude-protected",
		"import --yes --skip-preview --file f",
		"stack",
		"stack --stack dev",
		"stack ls --json",
		"stack init dev --copy-config-from a",
		"stack output --stack dev",
		"stack output --shell",
		"stack history --stack dev",
		"stack export --version 3",
		"stack rename other",
		"stack tag set a b",
		"config set a b",
		"plugin ls",
		"whoami",
		"no-such-command",
	} {
		command, err := Parse(fields(line))
		if _, unserved := err.(Unserved); !unserved {
			t.Errorf("%q is served: %q, %v", line, command.Verb, err)
		}
	}
}

func TestValuesOfFlags(t *testing.T) {
	command, err := Parse(fields("up -f -y --client 1 -s dev -t a --target b -p 7 --refresh -C /there"))
	if err != nil {
		t.Fatal(err)
	}
	if !command.Bool("skip-preview") || !command.Bool("yes") || command.Bool("diff") {
		t.Error("booleans")
	}
	if command.String("stack") != "dev" || command.String("refresh") != "true" || command.String("cwd") != "/there" {
		t.Error("texts")
	}
	if !slices.Equal(command.Strings("target"), []string{"a", "b"}) || command.Int32("parallel") != 7 {
		t.Error("lists and numbers")
	}
	if command.Bool("preview-only") || command.String("no-such-flag") != "" {
		t.Error("flags that the command does not have")
	}
}

func TestEveryServedFlagIsOneOfItsCommand(t *testing.T) {
	for verb, flags := range served {
		root := newRoot(fields(string(verb)))
		found, _, err := root.Find(fields(string(verb)))
		if err != nil || found.CommandPath() != "pulumi "+string(verb) {
			t.Fatalf("%q is %q: %v", verb, found.CommandPath(), err)
		}
		if err := found.ParseFlags(nil); err != nil {
			t.Fatal(err)
		}
		for _, flag := range append(flags, everywhere...) {
			if found.Flags().Lookup(flag) == nil {
				t.Errorf("pulumi %s --%s", verb, flag)
			}
		}
	}
}
