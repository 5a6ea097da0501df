// Package operation runs the served commands with Pulumi's own packages.
//
// The CLI uses the working directory, standard output and error, and the signals of its process. Here they come from
// the request, because many commands share this process. Each command opens a backend of its own, as each process of
// the CLI does, so locks are between commands and not between engines.
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

// Lease is the use of kept providers by one operation.
type Lease interface {
	// HostFactory wraps the factory of the plugin host; its hosts take providers from the pool.
	HostFactory(base engine.HostFactory) engine.HostFactory
	// End releases the providers.
	End(outcome providers.Outcome)
}

// Shared are the functions that all operations of an engine use.
type Shared struct {
	// Begin leases providers for one operation.
	Begin func(project, stack string) Lease
	// NoteLock notes that an operation is about to lock a stack, and returns a function to call when it has released
	// it.
	NoteLock func(backendURL, stack string) func()
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
	// begin notifies the client that the command begins. After that, the CLI can no longer run it.
	begin func()
}

// verbs are the implementations of the commands.
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

// reading lists the commands that an interrupt aborts. The others must release their locks. Operations on resources are
// cancelled gracefully, see scopes.
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
		path = real // a process sees its working directory without symbolic links
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
		begin:      func() { _ = writer.Begin() }, // if the client has disconnected, the command runs anyway
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

// requireStack returns the stack of a command.
func (c *call) requireStack(ctx context.Context, name string, option stack.LoadOption) (backend.Stack, error) {
	login := logins{sink: c.sink}
	return stack.RequireStack(ctx, c.sink, c.folder, login, name, option, display.Options{Color: c.color}, "")
}

// configuration returns the settings file of a stack: the one given, or the CLI's default.
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

// colorization returns the CLI's interpretation of --color without a terminal.
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

// environmentProblem returns a variable of the environment that the engine does not support, if any.
func environmentProblem(environment []string) string {
	for _, variable := range environment {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "PULUMI_OPTION_") {
			return fmt.Sprintf("flags from the environment (%s) are not served", name)
		}
	}
	return ""
}
