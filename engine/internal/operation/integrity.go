package operation

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/pulumi/pulumi/pkg/v3/resource/stack/snapshot"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/env"
	"github.com/pulumi/pulumi/sdk/v3/go/common/version"
)

// integrityText returns the CLI's message about an invalid state.
func integrityText(err error, integrity *snapshot.SnapshotIntegrityError, arguments []string) string {
	var text strings.Builder
	text.WriteString("The Pulumi CLI encountered a snapshot integrity error. This is a bug!\n\n")
	if integrity.AutoRepairErr != nil {
		fmt.Fprintf(&text, "The Pulumi CLI attempted to automatically repair this error but was unable to\n"+
			"do so (%v). You can try to repair the snapshot by passing the `--disable-integrity-checking` flag."+
			"This will disable integrity checking on many Pulumi commands. This will allow you to execute "+
			"fine-grained repairs using e.g. `pulumi state delete`", integrity.AutoRepairErr)
	} else {
		text.WriteString("You can try to repair your snapshot as follows:\n\n" +
			"* Using the `pulumi state repair` command. This is the recommended approach.\n" +
			"  Run `pulumi state repair --help` for more information.\n" +
			"* Passing the `--disable-integrity-checking` flag. This will disable integrity\n" +
			"  checking on many Pulumi commands. This is riskier, but may allow you to\n" +
			"  execute fine-grained repairs using e.g. `pulumi state delete`.\n")
	}
	const line = "================================================================================"
	text.WriteString("\n" + line + "\nWe would appreciate a report: https://github.com/pulumi/pulumi/issues/\n")
	if integrity.Op == snapshot.SnapshotIntegrityRead && integrity.Metadata == nil {
		text.WriteString("\nNOTE: This error occurred while reading a snapshot. This error was introduced by\n" +
			"a previous operation when it wrote the snapshot. If you have details about that\n" +
			"operation, please include them in your report as well.\n")
	}
	fmt.Fprintf(&text, "\nPlease provide all of the text below in your report.\n"+line+"\n"+
		"Go Version:        %s\nGo Compiler:       %s\nArchitecture:      %s\nOperating System:  %s",
		runtime.Version(), runtime.Compiler, runtime.GOARCH, runtime.GOOS)
	command := strings.Join(append([]string{"pulumi"}, arguments...), " ")
	if written := integrity.Metadata; integrity.Op == snapshot.SnapshotIntegrityRead && written != nil {
		fmt.Fprintf(&text, "\n\nWrite Version:     %s\nWrite Command:     %s\nWrite Env Vars:    %s\nWrite Error:       %s"+
			"\n\nRead Version:      %s\nRead Command:      %s\nRead Env Vars:     %s\nRead Error:        %s",
			written.Version, written.Command, variables(written.EnvVars), written.Error,
			version.Version, command, variables(env.ConfiguredVariables()), err)
	} else {
		fmt.Fprintf(&text, "\n\nPulumi Version:    %s\nCommand:           %s\nEnv Vars:          %s\nError:             %s",
			version.Version, command, variables(env.ConfiguredVariables()), err)
	}
	fmt.Fprintf(&text, "\n\nStack Trace:\n\n%s\n", integrity.Stack)
	return text.String()
}

func variables(values map[string]string) string {
	if len(values) == 0 {
		return "(none)"
	}
	parts := make([]string, 0, len(values))
	for name, value := range values {
		parts = append(parts, name+"="+value)
	}
	return strings.Join(parts, ", ")
}
