package command

import (
	"slices"
	"strings"

	"github.com/pulumi/pulumi/pkg/v3/cmd/pulumi/cancel"
	"github.com/pulumi/pulumi/pkg/v3/cmd/pulumi/operations"
	"github.com/pulumi/pulumi/pkg/v3/cmd/pulumi/stack"
	"github.com/pulumi/pulumi/pkg/v3/cmd/pulumi/version"
	"github.com/pulumi/pulumi/pkg/v3/workspace"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Parse parses a command line.
//
// The error is an Unserved: the arguments are not served or not valid.
func Parse(args []string) (Command, error) {
	root := newRoot(args)
	found, rest, err := root.Find(args)
	if err != nil {
		return Command{}, unserved("%v", err)
	}
	verb := Verb(strings.TrimPrefix(found.CommandPath(), root.Name()+" "))
	flags, known := served[verb]
	if !known {
		return Command{}, unserved("`pulumi %s` is not served", verb)
	}
	if err := parse(found, rest); err != nil {
		return Command{}, unserved("%v", err)
	}
	command := Command{Verb: verb, Args: found.Flags().Args(), Flags: found.Flags()}
	found.Flags().Visit(func(flag *pflag.Flag) {
		if err == nil && !slices.Contains(flags, flag.Name) && !slices.Contains(everywhere, flag.Name) {
			err = unserved("`pulumi %s --%s` is not served", verb, flag.Name)
		}
	})
	if err != nil {
		return Command{}, err
	}
	return command, refuse(command)
}

// parse parses and validates flags and arguments as cobra does before it runs a command.
func parse(command *cobra.Command, args []string) error {
	if err := command.ParseFlags(args); err != nil {
		return err
	}
	if err := command.ValidateArgs(command.Flags().Args()); err != nil {
		return err
	}
	if err := command.ValidateRequiredFlags(); err != nil {
		return err
	}
	return command.ValidateFlagGroups()
}

// constructors create the CLI's commands that are served or have served subcommands.
var constructors = map[string]func() *cobra.Command{
	"up":      operations.NewUpCmd,
	"update":  operations.NewUpCmd,
	"preview": operations.NewPreviewCmd,
	"pre":     operations.NewPreviewCmd,
	"refresh": operations.NewRefreshCmd,
	"destroy": operations.NewDestroyCmd,
	"down":    operations.NewDestroyCmd,
	"dn":      operations.NewDestroyCmd,
	"stack":   stack.NewStackCmd,
	"cancel":  func() *cobra.Command { return cancel.NewCancelCmd(workspace.Instance) },
	"version": version.NewVersionCmd,
}

// newRoot returns the CLI's command tree, reduced to the commands that the arguments may name. Creating the complete
// tree takes a millisecond. Pulumi does not export the root and its flags, which are bound to global variables, so the
// flags are repeated here.
func newRoot(args []string) *cobra.Command {
	root := &cobra.Command{Use: "pulumi", SilenceErrors: true, SilenceUsage: true}
	flags := root.PersistentFlags()
	flags.StringP("cwd", "C", "", "")
	flags.BoolP("emoji", "e", false, "")
	flags.BoolP("fully-qualify-stack-names", "Q", false, "")
	flags.Bool("disable-integrity-checking", false, "")
	flags.Bool("logflow", false, "")
	flags.Bool("logtostderr", false, "")
	flags.Bool("non-interactive", false, "")
	flags.String("tracing", "", "")
	flags.String("otel-traces", "", "")
	flags.String("profiling", "", "")
	flags.Int("memprofilerate", 0, "")
	flags.IntP("verbose", "v", 0, "")
	flags.String("color", "auto", "")
	for name, construct := range constructors {
		if slices.Contains(args, name) {
			root.AddCommand(construct())
		}
	}
	return root
}
