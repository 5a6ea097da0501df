// Command pulumi-language-python lets a stock Pulumi engine run programs and policy packs that are written in Python.
//
// The official host is not a Go module of its own and is not in the registries. This is a small host on the public
// SDK. It serves the gRPC service LanguageRuntime: the engine starts the binary, reads the port that it
// prints as its first line, and lets it run programs (Run) and policy packs or other plugins (RunPlugin).
//
// Invariants: the host keeps no state between calls; each call starts processes of its own and ends them when the
// engine cancels the call; the host itself ends when the engine has ended.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
)

// engineCheckInterval is the interval of checks that the engine that started the host is alive.
const engineCheckInterval = 30 * time.Second

func main() {
	if err := serve(); err != nil {
		fmt.Fprintf(os.Stderr, "pulumi-language-python: %v\n", err)
		os.Exit(1)
	}
}

func serve() error {
	// The engine may pass these to any plugin; the SDK's logging package defines -v and -logtostderr.
	flag.String("tracing", "", "endpoint for traces (not used)")
	flag.Bool("logflow", false, "pass log flags on (not used)")
	flag.Parse()

	// The engine ends its plugins with SIGINT and waits for them. A Ctrl-C at the terminal does not reach them, because
	// it starts each in a process group of its own.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	host := &host{engine: flag.Arg(0)} // empty if the engine attaches and sends it by Handshake
	if host.engine != "" {
		if err := rpcutil.Healthcheck(ctx, host.engine, engineCheckInterval, stop); err != nil {
			return fmt.Errorf("watching the engine at %s: %w", host.engine, err)
		}
	}

	cancel := make(chan bool)
	go func() {
		<-ctx.Done()
		close(cancel)
	}()
	handle, err := rpcutil.ServeWithOptions(rpcutil.ServeOptions{
		Cancel: cancel,
		Init: func(server *grpc.Server) error {
			pulumirpc.RegisterLanguageRuntimeServer(server, host)
			return nil
		},
	})
	if err != nil {
		return err
	}
	fmt.Printf("%d\n", handle.Port)
	return <-handle.Done
}
