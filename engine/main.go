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
	arguments []string
}

func parse(arguments []string) (settings, error) {
	made := settings{arguments: arguments}
	if len(arguments) == 0 || arguments[0] != "serve" {
		return made, errors.New("usage: reside-engine serve --socket PATH (see reside-engine serve --help)")
	}
	flags := flag.NewFlagSet("reside-engine serve", flag.ContinueOnError)
	lifetime := flags.String("lifetime", "user", "user: it ends when idle; parent: it ends with its standard input")
	flags.StringVar(&made.socket, "socket", "", "path of the socket")
	flags.IntVar(&made.ready, "ready-fd", -1, "descriptor that gets a line when the engine listens")
	flags.DurationVar(&made.limits.Idle, "idle", 10*time.Minute, "time without a command after which it ends")
	flags.IntVar(&made.limits.Operations, "max-operations", 500,
		"operations after which a successor takes over; 0: never")
	flags.Int64Var(&made.limits.Memory, "max-rss", 258<<20,
		"bytes of memory, with providers, at which a successor takes over; 0: never")
	flags.DurationVar(&made.limits.Age, "max-age", 24*time.Hour, "age at which a successor takes over; 0: never")
	if err := flags.Parse(arguments[1:]); err != nil {
		return made, err
	}
	switch {
	case made.socket == "":
		return made, errors.New("--socket is needed: the path to listen at")
	case *lifetime == "parent":
		made.owned, made.limits.Idle = true, 0
	case *lifetime != "user":
		return made, fmt.Errorf("--lifetime is user or parent, not %q", *lifetime)
	}
	return made, nil
}

// silence keeps Pulumi's packages from writing to, or asking at, this process's own streams.
func silence() {
	cmdutil.DisableInteractive = true
	log.SetOutput(io.Discard)
	slog.SetDefault(slog.New(slog.DiscardHandler))
	if null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0); err == nil {
		// Beneath os.Stdout, which others may have taken already; and the descriptor is never closed and given away
		_ = syscall.Dup3(int(null.Fd()), 1, 0)
		_ = null.Close()
	}
}
