package command

import "slices"

// everywhere lists the served flags of the root.
var everywhere = []string{"cwd", "non-interactive", "color"}

// operation lists the served flags that all four operations have.
var operation = []string{
	"stack", "config-file", "client", "message", "exec-kind", "exec-agent", "event-log",
	"target", "exclude", "target-dependents",
	"parallel", "debug", "diff", "run-program", "skip-config-validation", "skip-plugin-pre-install",
	"show-replacement-steps", "show-sames", "urns",
	"suppress-outputs", "suppress-progress", "suppress-permalink",
}

// served lists the served flags of each served command.
//
// Intentionally not served are: --json and --output of operations, because the display writes to the standard output of
// the process; plans, import files, policy packs and --config, because their paths are relative to the folder of the
// process; remote deployments, debuggers, templates and Neo; and settings of the whole process (logging, tracing,
// profiling).
var served = map[Verb][]string{
	Up: append([]string{
		"yes", "skip-preview", "exclude-dependents", "expect-no-changes", "replace", "target-replace", "refresh", "continue-on-error",
		"ignore-protect", "show-config", "show-policy-remediations", "show-reads", "show-secrets", "show-full-output",
	}, operation...),
	Preview: append([]string{
		"exclude-dependents", "expect-no-changes", "replace", "target-replace", "refresh", "ignore-protect",
		"show-config", "show-policy-remediations", "show-reads", "show-secrets", "show-full-output",
	}, operation...),
	Refresh: append([]string{
		"yes", "skip-preview", "preview-only", "exclude-dependents", "expect-no-changes", "clear-pending-creates", "skip-pending-creates",
	}, operation...),
	Destroy: append([]string{
		"yes", "skip-preview", "preview-only", "remove", "refresh", "continue-on-error",
		"ignore-protect", "show-config", "show-full-output",
	}, operation...),
	Cancel:  {"stack", "yes"},
	Version: {},
	Select:  {"stack", "create", "secrets-provider"},
	New:     {"stack", "secrets-provider", "no-select", "yes"},
	Output:  {"stack", "json", "show-secrets"},
	History: {"stack", "json", "show-secrets", "page", "page-size"},
	Export:  {"stack", "file", "show-secrets"},
	Import:  {"stack", "file", "force"},
	Remove:  {"stack", "yes", "force", "preserve-config", "remove-backups"},
}

// refuse returns an error for combinations that are not served although each flag is.
func refuse(command Command) error {
	switch command.Verb {
	case Up, Preview:
		if command.String("client") == "" {
			return unserved("only inline programs are served: `--client` is missing")
		}
		if len(command.Args) > 0 {
			return unserved("templates are not served")
		}
	case Refresh, Destroy:
		if command.Bool("run-program") && command.String("client") == "" {
			return unserved("only inline programs are served: `--client` is missing")
		}
	case Output, History:
		if !command.Bool("json") {
			return unserved("`pulumi %s` is served with --json only", command.Verb)
		}
	}
	if command.String("suppress-permalink") == "false" {
		return unserved("permalinks are not served")
	}
	if !slices.Contains([]string{"auto", "never", "always", "raw"}, command.String("color")) {
		return unserved("unknown colour: %q", command.String("color"))
	}
	return nil
}
