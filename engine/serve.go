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

// How long an engine that stops waits for running commands: without an interrupt, after the first interrupt, and after
// the second interrupt.
const (
	patience = 20 * time.Second
	grace    = 10 * time.Second
	last     = 5 * time.Second
	// How long the providers and the socket may take to close before the process ends without that. The kernel kills
	// the providers of a process that ends.
	closing = 30 * time.Second
)

// Limits of the garbage collector for the engine and, through their environment, for providers. GOMEMLIMIT and GOGC in
// the user's environment have precedence. What lives is small beside what an operation discards, so a collection at
// three times of it, in place of twice, saves a tenth of the CPU time. The memory limits, and 130 MiB for the code of
// both, are less than the memory at which an engine that works hands over.
const (
	engineMemory   = 70 << 20
	providerMemory = "65MiB"
	engineGrowth   = 200
	providerGrowth = "200"
	supervisorTick = 2 * time.Second
)

// engine is a running engine.
type engine struct {
	settings  settings
	started   time.Time
	commands  *server.Server
	pool      *providers.Pool
	meter     proc.Meter
	collector *life.Collector
	stopping  sync.Once
	stop      chan struct{}
}

// serve runs an engine until it must end.
func serve(settings settings, logger *slog.Logger) error {
	life.BoundLog()
	collector := life.NewCollector(engineMemory, engineGrowth)
	proc.Name("reside-engine")
	socket, err := life.Listen(settings.socket)
	if err != nil {
		return err
	}
	defer func() { _ = socket.Close() }() // closed before, unless serve failed
	folder, err := filepath.Abs(filepath.Dir(settings.socket))
	if err != nil {
		return fmt.Errorf("the folder of %s: %w", settings.socket, err)
	}
	notes, err := life.NewLockNotes(folder, logger)
	if err != nil {
		return err
	}
	defer notes.Close()
	pool, err := newPool(folder, logger)
	if err != nil {
		return err
	}
	defer pool.Close()
	e := &engine{
		settings: settings, started: time.Now(), pool: pool, collector: collector, stop: make(chan struct{}),
	}
	shared := operation.Shared{
		Begin:    func(project, stack string) operation.Lease { return pool.Begin(project, stack) },
		NoteLock: notes.Add,
	}
	e.commands = server.New(operation.Handler(shared), server.Options{Control: e.control, Grace: grace, Last: last}, logger)
	e.watch()

	if err := socket.Publish(); err != nil {
		return err
	}
	if err := life.Ready(settings.ready); err != nil {
		return err
	}
	logger.Info("the engine is ready", "version", version.Version, "socket", settings.socket)
	serving := make(chan error, 1)
	go func() { serving <- e.commands.Serve(socket.UnixListener) }()
	supervisor := life.Supervisor{
		Limits: settings.limits, Engine: e.controls(socket), Log: logger, Tick: supervisorTick, Patience: patience,
		Longest: settings.drain,
	}
	supervisor.Run(e.stop)
	time.AfterFunc(closing, func() {
		logger.Error("the engine ends although its providers do not")
		os.Exit(1)
	})
	if err := socket.Close(); err != nil {
		return fmt.Errorf("the socket: %w", err)
	}
	return <-serving
}

// newPool creates the pool of providers. The guard is in the folder of the engine's binary. The file of the binary may
// have been replaced since the engine started.
func newPool(folder string, logger *slog.Logger) (*providers.Pool, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("the engine's own path: %w", err)
	}
	guard := filepath.Join(filepath.Dir(strings.TrimSuffix(binary, " (deleted)")), "reside-plugin-guard")
	if _, err := os.Stat(guard); err != nil {
		return nil, fmt.Errorf("%s must be in the same folder as reside-engine: install both: %w", guard, err)
	}
	return providers.NewPool(providers.Options{
		Folder: filepath.Join(folder, "plugins"), Guard: guard, Logger: logger,
		Environment: map[string]string{"GOMEMLIMIT": providerMemory, "GOGC": providerGrowth},
	}), nil
}

// watch stops the engine when a signal arrives or the owner dies.
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

// controls returns what the supervisor needs of this engine.
func (e *engine) controls(socket *life.Socket) life.Engine {
	return life.Engine{
		Counts: func() (int, int, <-chan struct{}) {
			counts, changed := e.commands.Counts()
			return counts.Running, e.pool.Operations(), changed
		},
		Memory:  e.memory,
		Release: debug.FreeOSMemory,
		StartSuccessor: func(ctx context.Context) error {
			debug.FreeOSMemory() // leaves unused memory to the successor while both run
			return life.Successor(ctx, os.Args)
		},
		Drain: func(ctx context.Context) int {
			socket.Withdraw()
			return e.commands.Drain(ctx)
		},
	}
}

// memory returns the memory of the engine and its providers in bytes. Each shared page counts in proportion to the
// number of processes that share it (PSS).
func (e *engine) memory() int64 {
	e.collector.Adjust()
	sum := e.meter.Proportional(os.Getpid())
	for _, provider := range e.pool.Status() {
		sum += e.meter.Proportional(provider.PID)
	}
	return sum
}

// status is the output of --engine-status.
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

// control handles commands about the engine itself.
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
