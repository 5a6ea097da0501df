// Command reside-engine is a long-lived Pulumi engine: it serves `pulumi` commands over a unix socket.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/util/cmdutil"
	"github.com/pulumi/pulumi/sdk/v3/go/common/version"

	"reside.dev/engine/internal/operation"
	"reside.dev/engine/internal/providers"
	"reside.dev/engine/internal/server"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "version" {
		fmt.Println(version.Version)
		return
	}
	if err := serve(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "reside-engine: %v\n", err)
		os.Exit(1)
	}
}

func serve(arguments []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	socket := flags.String("socket", "", "path of the socket")
	ready := flags.Int("ready-fd", -1, "descriptor that gets a line when the engine listens")
	flags.String("lifetime", "user", "user or parent")
	flags.Duration("idle", 0, "")
	flags.Int("max-operations", 0, "")
	flags.Int64("max-rss", 0, "")
	flags.Duration("max-age", 0, "")
	if len(arguments) == 0 || arguments[0] != "serve" {
		return fmt.Errorf("usage: reside-engine serve --socket PATH")
	}
	if err := flags.Parse(arguments[1:]); err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	silence()
	started := time.Now()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	var commands *server.Server
	var pool *providers.Pool
	control := func(arguments []string) (string, bool) {
		if len(arguments) != 1 {
			return "", false
		}
		switch arguments[0] {
		case "--engine-stop":
			stop <- syscall.SIGTERM
			return "", true
		case "--engine-status":
			counts, _ := commands.Counts()
			text, err := json.Marshal(map[string]any{
				"pid": os.Getpid(), "version": version.Version, "started": started, "operations": counts.Served,
				"running": counts.Running, "draining": counts.Draining, "goroutines": runtime.NumGoroutine(),
				"providers": pool.Status(),
			})
			if err != nil {
				return err.Error(), true
			}
			return string(text) + "\n", true
		}
		return "", false
	}
	folder, err := filepath.Abs(fmt.Sprintf("%s.%d.plugins", *socket, os.Getpid()))
	if err != nil {
		return err
	}
	binary, err := os.Executable()
	if err != nil {
		return err
	}
	pool = providers.NewPool(providers.Options{
		Folder: folder, Guard: filepath.Join(filepath.Dir(binary), "reside-plugin-guard"), Logger: logger,
	})
	defer pool.Close()
	shared := operation.Shared{
		Begin: func(project, stack string) operation.Lease { return pool.Begin(project, stack) },
		Taken: func(string, string) func() { return func() {} },
		Log:   logger,
	}
	commands = server.New(operation.Handler(shared), server.Options{
		Control: control, Grace: 10 * time.Second, Last: 5 * time.Second,
	}, logger)
	syscall.Umask(0o077)
	own := fmt.Sprintf("%s.%d", *socket, os.Getpid())
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: own, Net: "unix"})
	if err != nil {
		return err
	}
	listener.SetUnlinkOnClose(false)
	if err := os.Rename(own, *socket); err != nil {
		return err
	}
	if *ready >= 0 {
		file := os.NewFile(uintptr(*ready), "ready")
		fmt.Fprintln(file, "ready")
		file.Close()
	}
	go func() {
		<-stop
		patience, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		commands.Drain(patience)
		listener.Close()
	}()
	return commands.Serve(listener)
}

// silence keeps Pulumi's packages from writing to, or asking at, this process's own streams.
func silence() {
	cmdutil.DisableInteractive = true
	log.SetOutput(io.Discard)
	slog.SetDefault(slog.New(slog.DiscardHandler))
	if null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0); err == nil {
		os.Stdout = null
	}
}
