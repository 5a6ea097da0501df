package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/version"

	"reside.dev/engine/internal/life"
	"reside.dev/engine/internal/operation"
	"reside.dev/engine/internal/proc"
	"reside.dev/engine/internal/providers"
	"reside.dev/engine/internal/server"
)

// How long an engine that was told to stop waits for what runs: for its end, for the end after an interruption, and
// after the second interruption.
const (
	patience = 20 * time.Second
	grace    = 10 * time.Second
	last     = 5 * time.Second
)

// What the collector keeps the engine and, by their environment, providers below if it can; a user's own GOMEMLIMIT
// wins. Collecting earlier besides (GOGC=50) would double an engine's life in operations before it has grown too large,
// and cost a tenth of each operation's time.
const (
	engineMemory    = 120 << 20
	providerMemory  = "90MiB"
	tickOfTheKeeper = 2 * time.Second
)

// engine is a running engine's parts.
type engine struct {
	settings settings
	started  time.Time
	commands *server.Server
	pool     *providers.Pool
	stopping sync.Once
	stop     chan struct{}
}

// serve runs an engine until it must end.
func serve(settings settings, logger *slog.Logger) error {
	life.BoundLog()
	limitMemory()
	proc.Name("reside-engine")
	socket, err := life.Listen(settings.socket)
	if err != nil {
		return err
	}
	defer func() { _ = socket.Close() }() // it is closed by then, unless we failed
	folder, err := filepath.Abs(filepath.Dir(settings.socket))
	if err != nil {
		return fmt.Errorf("the folder of %s: %w", settings.socket, err)
	}
	held, err := life.NewHeld(folder, logger)
	if err != nil {
		return err
	}
	defer held.Close()
	pool, err := newPool(folder, logger)
	if err != nil {
		return err
	}
	defer pool.Close()
	e := &engine{settings: settings, started: time.Now(), pool: pool, stop: make(chan struct{})}
	shared := operation.Shared{
		Begin: func(project, stack string) operation.Lease { return pool.Begin(project, stack) },
		Taken: held.Taken,
	}
	e.commands = server.New(operation.Handler(shared), server.Options{Control: e.control, Grace: grace, Last: last}, logger)
	e.watch()

	if err := socket.Publish(); err != nil {
		return err
	}
	if err := life.Ready(settings.ready); err != nil {
		return err
	}
	logger.Info("the engine serves", "version", version.Version, "socket", settings.socket)
	serving := make(chan error, 1)
	go func() { serving <- e.commands.Serve(socket.UnixListener) }()
	keeper := life.Keeper{
		Limits: settings.limits, Served: e.served(socket), Log: logger, Tick: tickOfTheKeeper, Patience: patience,
	}
	keeper.Keep(e.stop)
	if err := socket.Close(); err != nil {
		return fmt.Errorf("the socket: %w", err)
	}
	return <-serving
}

// newPool makes the pool of providers. Their guard lies beside the engine's binary, whose file may have been replaced.
func newPool(folder string, logger *slog.Logger) (*providers.Pool, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("the engine's own path: %w", err)
	}
	guard := filepath.Join(filepath.Dir(strings.TrimSuffix(binary, " (deleted)")), "reside-plugin-guard")
	if _, err := os.Stat(guard); err != nil {
		return nil, fmt.Errorf("%s must lie beside reside-engine: install both: %w", guard, err)
	}
	return providers.NewPool(providers.Options{
		Folder: filepath.Join(folder, "plugins"), Guard: guard, Logger: logger,
		Environment: map[string]string{"GOMEMLIMIT": providerMemory},
	}), nil
}

// limitMemory makes the collector work earlier than for a process that has the machine to itself.
func limitMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(engineMemory)
	}
}

// watch turns signals, and the end of an owner, into the wish to stop.
func (e *engine) watch() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	var ended <-chan struct{}
	if e.settings.owned {
		ended = life.AwaitEnd(os.Stdin)
	}
	go func() {
		select {
		case <-signals:
		case <-ended:
		}
		e.end()
	}()
}

func (e *engine) end() { e.stopping.Do(func() { close(e.stop) }) }

// served is what the keeper sees of this engine.
func (e *engine) served(socket *life.Socket) life.Served {
	return life.Served{
		Counts: func() (int, int, <-chan struct{}) {
			counts, changed := e.commands.Counts()
			return counts.Running, e.pool.Operations(), changed
		},
		Memory: e.memory,
		Succeed: func(ctx context.Context) error {
			debug.FreeOSMemory() // while both live, what this one doesn't use any more is better left to the other
			return life.Successor(ctx, os.Args)
		},
		Drain: func(ctx context.Context) {
			socket.Withdraw()
			e.commands.Drain(ctx)
		},
	}
}

// memory is what the engine and its providers take together, pages that they share with others in proportion.
func (e *engine) memory() int64 {
	sum := proc.Proportional(os.Getpid())
	for _, provider := range e.pool.Status() {
		sum += proc.Proportional(provider.PID)
	}
	return sum
}

// status is what --engine-status prints.
type status struct {
	PID        int                        `json:"pid"`
	Version    string                     `json:"version"`
	Started    time.Time                  `json:"started"`
	Operations int                        `json:"operations"`
	Running    int                        `json:"running"`
	Draining   bool                       `json:"draining"`
	Providers  []providers.ProviderStatus `json:"providers"`
	Memory     int64                      `json:"memory"` // bytes, with providers, shared pages in proportion
	life.Usage
}

// control answers questions about the engine itself.
func (e *engine) control(arguments []string) (string, bool) {
	if len(arguments) != 1 {
		return "", false
	}
	switch arguments[0] {
	case "--engine-stop":
		e.end()
		return "", true
	case "--engine-status":
		counts, _ := e.commands.Counts()
		text, err := json.Marshal(status{
			os.Getpid(), version.Version, e.started, e.pool.Operations(), counts.Running, counts.Draining, e.pool.Status(),
			e.memory(), life.OwnUsage(),
		})
		if err != nil {
			return err.Error() + "\n", true
		}
		return string(text) + "\n", true
	}
	return "", false
}
