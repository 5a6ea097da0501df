// Package operation runs the served commands with Pulumi's own packages.
//
// What the CLI takes from its process (working directory, standard output and error, signals) comes from the request
// here, and nothing of it is read from this process, which many commands share. Each command opens a backend of its
// own, as each CLI process does, so that locks are between commands, not between engines.
package operation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/pkg/v3/backend"
	"github.com/pulumi/pulumi/pkg/v3/backend/display"
	"github.com/pulumi/pulumi/pkg/v3/cmd/pulumi/stack"
	"github.com/pulumi/pulumi/pkg/v3/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag/colors"
	"github.com/pulumi/pulumi/sdk/v3/go/common/version"

	"reside.dev/engine/internal/command"
	"reside.dev/engine/internal/providers"
	"reside.dev/engine/internal/server"
	"reside.dev/engine/internal/wire"
)

// Lease is an operation's use of the providers that live on.
type Lease interface {
	// HostFactory wraps the factory of the plugin host, so that providers come from the pool.
	HostFactory(base engine.HostFactory) engine.HostFactory
	// End gives the providers back.
	End(outcome providers.Outcome)
}

// Shared is what the operations of an engine share.
type Shared struct {
	// Begin leases providers for one operation.
	Begin func(project, stack string) Lease
	// Taken notes that an operation is about to lock a stack, and returns what to call when it has let go.
	Taken func(backendURL, stack string) func()
}

// call is one running command.
type call struct {
	shared     Shared
	command    command.Command
	arguments  []string
	folder     folder
	stdin      string
	stdout     io.Writer
	stderr     io.Writer
	sink       diag.Sink
	color      colors.Colorization
	interrupts <-chan struct{}
	// begin tells the client that nothing can be taken back any more.
	begin func()
}

// verbs are what the commands do.
var verbs = map[command.Verb]func(*call, context.Context) error{
	command.Up:      (*call).up,
	command.Preview: (*call).preview,
	command.Refresh: (*call).refresh,
	command.Destroy: (*call).destroy,
	command.Cancel:  (*call).cancel,
	command.Version: (*call).version,
	command.Select:  (*call).selectStack,
	command.New:     (*call).newStack,
	command.Remove:  (*call).removeStack,
	command.Output:  (*call).output,
	command.History: (*call).history,
	command.Export:  (*call).export,
	command.Import:  (*call).importState,
}

// reading are the commands that an interrupt simply breaks off. The others must let go of what they hold, and what
// works on resources has a better way to end, see scopes.
var reading = []command.Verb{command.Output, command.History, command.Export}

// Handler returns the handler that runs served commands.
func Handler(shared Shared) server.Handler {
	return func(request wire.Request, writer *wire.Writer, interrupts <-chan struct{}) server.Answer {
		if why := environmentProblem(os.Environ()); why != "" {
			return server.Answer{Unserved: why}
		}
		parsed, err := command.Parse(request.Args)
		if err != nil {
			return server.Answer{Unserved: err.Error()}
		}
		running := newCall(shared, parsed, request, writer, interrupts)
		return running.answer(running.run())
	}
}

func newCall(
	shared Shared, parsed command.Command, request wire.Request, writer *wire.Writer, interrupts <-chan struct{},
) *call {
	color := colorization(parsed.String("color"))
	stderr := writer.Stderr()
	path := filepath.Clean(request.Cwd)
	if change := parsed.String("cwd"); change != "" {
		path = folder{path: path}.resolve(change)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // as a process sees its working directory
	}
	return &call{
		shared:     shared,
		command:    parsed,
		arguments:  request.Args,
		folder:     newFolder(path),
		stdin:      request.Stdin,
		stdout:     writer.Stdout(),
		stderr:     stderr,
		sink:       diag.DefaultSink(stderr, stderr, diag.FormatOptions{Color: color}),
		color:      color,
		interrupts: interrupts,
		begin:      func() { _ = writer.Begin() }, // a client that has gone is no reason not to
	}
}

func (c *call) run() error {
	if !filepath.IsAbs(c.folder.path) {
		return command.Unserved{Why: fmt.Sprintf("the working directory %q is not an absolute path", c.folder.path)}
	}
	if info, err := os.Stat(c.folder.path); err != nil {
		return fmt.Errorf("chdir %s: %w", c.folder.path, errors.Unwrap(err))
	} else if !info.IsDir() {
		return fmt.Errorf("chdir %s: not a directory", c.folder.path)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if slices.Contains(reading, c.command.Verb) {
		go func() {
			select {
			case <-c.interrupts:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return verbs[c.command.Verb](c, ctx)
}

func (c *call) answer(err error) server.Answer {
	var unserved command.Unserved
	if errors.As(err, &unserved) {
		return server.Answer{Unserved: unserved.Why}
	}
	return server.Answer{Exit: exit(err, c.sink, c.arguments)}
}

// requireStack finds the stack that a command is about.
func (c *call) requireStack(ctx context.Context, name string, option stack.LoadOption) (backend.Stack, error) {
	login := logins{sink: c.sink}
	return stack.RequireStack(ctx, c.sink, c.folder, login, name, option, display.Options{Color: c.color}, "")
}

// configuration returns the file with a stack's settings, as given or where the CLI looks for it.
func (c *call) configuration(target backend.Stack) (string, error) {
	if given := c.command.String("config-file"); given != "" {
		return c.folder.resolve(given), nil
	}
	return c.folder.settings(target.Ref().Name().Q())
}

func (c *call) version(context.Context) error {
	_, err := fmt.Fprintln(c.stdout, version.Version)
	return err
}

// colorization is what the CLI makes of --color when nobody watches.
func colorization(flag string) colors.Colorization {
	switch flag {
	case "always":
		return colors.Always
	case "raw":
		return colors.Raw
	default:
		return colors.Never
	}
}

// environmentProblem finds settings of the environment that the engine does not know to follow.
func environmentProblem(environment []string) string {
	for _, variable := range environment {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "PULUMI_OPTION_") {
			return fmt.Sprintf("flags from the environment (%s) are not served", name)
		}
	}
	return ""
}
