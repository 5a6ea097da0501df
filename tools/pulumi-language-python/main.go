// pulumi-language-python lets a stock Pulumi engine run programs and policy packs that are written in Python.
//
// The official host is no Go module of its own and cannot be had from the registries, so this is a small one of ours
// on the public SDK. It speaks the gRPC service LanguageRuntime: the engine starts the binary, reads the port that it
// prints as its first line, and asks it to run programs (Run) and policy packs or other plugins (RunPlugin).
//
// Invariants: the host holds no state between calls; each call starts processes of its own and ends them when the
// engine cancels the call; the host itself ends when the engine is gone.
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

// engineCheckInterval is how often the host asks whether the engine that started it is still there.
const engineCheckInterval = 30 * time.Second

func main() {
	if err := serve(); err != nil {
		fmt.Fprintf(os.Stderr, "pulumi-language-python: %v\n", err)
		os.Exit(1)
	}
}

func serve() error {
	// The engine may pass these to any plugin; -v and -logtostderr are known to the SDK's own logging already.
	flag.String("tracing", "", "endpoint for traces (not used)")
	flag.Bool("logflow", false, "pass log flags on (not used)")
	flag.Parse()

	// The engine ends its plugins with SIGINT and waits for that; a Ctrl-C at the terminal does not reach them, since
	// it runs each in a process group of its own.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	host := &host{engine: flag.Arg(0)} // empty when the engine attaches and says it by Handshake
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
