// Command reside-engine is a long-lived Pulumi engine: it serves `pulumi` commands over a unix socket.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/util/cmdutil"
	"github.com/pulumi/pulumi/sdk/v3/go/common/version"

	"reside.dev/engine/internal/life"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "version" {
		fmt.Println(version.Version)
		return
	}
	settings, err := parse(os.Args[1:])
	if err == nil {
		silence()
		err = serve(settings, slog.New(slog.NewTextHandler(os.Stderr, nil)).With("pid", os.Getpid()))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "reside-engine: %v\n", err)
		os.Exit(1)
	}
}

// settings are the arguments of `reside-engine serve`.
type settings struct {
	socket    string
	ready     int
	owned     bool
	limits    life.Limits
	drain     time.Duration
	arguments []string
}

func parse(arguments []string) (settings, error) {
	made := settings{arguments: arguments}
	if len(arguments) == 0 || arguments[0] != "serve" {
		return made, errors.New("usage: reside-engine serve --socket PATH (see reside-engine serve --help)")
	}
	flags := flag.NewFlagSet("reside-engine serve", flag.ContinueOnError)
	lifetime := flags.String("lifetime", "user", "user: end when idle; parent: end when standard input is closed")
	flags.StringVar(&made.socket, "socket", "", "path of the socket")
	flags.IntVar(&made.ready, "ready-fd", -1, "file descriptor to which a line is written when the engine listens")
	flags.DurationVar(&made.limits.Idle, "idle", 10*time.Minute, "time without a command after which the engine ends")
	flags.IntVar(&made.limits.Operations, "max-operations", 500,
		"operations after which a successor takes over; 0: never")
	flags.Int64Var(&made.limits.Memory, "max-rss", 258<<20,
		"bytes of memory, with providers, at which a successor takes over; 0: never")
	flags.DurationVar(&made.limits.Age, "max-age", 24*time.Hour, "age at which a successor takes over; 0: never")
	flags.DurationVar(&made.drain, "max-drain", 6*time.Hour,
		"time after which running commands are ended when a successor has taken over; 0: never")
	if err := flags.Parse(arguments[1:]); err != nil {
		return made, err
	}
	switch {
	case made.socket == "":
		return made, errors.New("--socket is missing: the path at which to listen")
	case *lifetime == "parent":
		made.owned, made.limits.Idle = true, 0
	case *lifetime != "user":
		return made, fmt.Errorf("--lifetime must be user or parent, not %q", *lifetime)
	}
	return made, nil
}

// silence prevents Pulumi's packages from writing to the streams of this process and from prompting.
func silence() {
	cmdutil.DisableInteractive = true
	log.SetOutput(io.Discard)
	slog.SetDefault(slog.New(slog.DiscardHandler))
	if null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0); err == nil {
		// Replaces the file descriptor, because other packages may have copied os.Stdout. The descriptor stays open, so
		// that no other file gets its number.
		_ = syscall.Dup3(int(null.Fd()), 1, 0)
		_ = null.Close()
	}
}
