package life

import (
	"context"
	"io"
	"log/slog"
	"time"
)

// Engine is the part of the engine that the supervisor uses.
type Engine struct {
	// Counts returns how many commands run, how many operations were begun, and a channel that is closed when that
	// changes.
	Counts func() (running, operations int, changed <-chan struct{})
	// Memory returns the memory of the engine and its providers in bytes.
	Memory func() int64
	// Release returns unused memory of the engine to the kernel.
	Release func()
	// StartSuccessor starts a successor. When it returns, the successor has taken over the socket.
	StartSuccessor func(context.Context) error
	// Drain refuses new commands and waits for running ones. When the context ends, it interrupts them, then terminates
	// them. It returns how many have not ended.
	Drain func(context.Context) int
}

// Supervisor decides when an engine ends.
type Supervisor struct {
	Limits Limits
	Engine Engine
	Log    *slog.Logger
	// Tick is the interval of checks of the limits without an event.
	Tick time.Duration
	// Patience limits the time that running commands may take when the engine is stopped.
	Patience time.Duration
	// Longest limits the time that running commands may take when a successor has taken over. 0: no limit.
	Longest time.Duration
}

// memoryInterval is the minimal time between measurements of memory, which take some milliseconds. It is short because
// many concurrent operations may use tens of MiB more within a second.
const memoryInterval = 250 * time.Millisecond

// successorTime limits the time that a successor may take to become ready.
const successorTime = 30 * time.Second

// Run returns when the engine must end and no command is running. Closing the channel stops the engine.
func (k Supervisor) Run(stop <-chan struct{}) {
	begun, lastActive, failures := time.Now(), time.Now(), 0
	var notBefore time.Time
	released := false // since the last command
	tick := time.NewTicker(k.Tick)
	defer tick.Stop()
	memory, measured := k.Engine.Memory(), time.Now()
	for {
		running, operations, changed := k.Engine.Counts()
		if running > 0 {
			lastActive, released = time.Now(), false
		}
		if !released && k.Limits.spare(memory, running, time.Since(lastActive)) {
			k.Engine.Release() // it may be garbage that was not collected yet
			released, memory, measured = true, k.Engine.Memory(), time.Now()
		}
		facts := Facts{
			Operations: operations, Running: running, Memory: memory,
			Age: time.Since(begun), IdleSince: time.Since(lastActive),
		}
		if k.Limits.Expired(facts) {
			k.Log.Info("the engine ends: it was idle")
			k.drain(stop, k.Longest)
			return
		}
		if why := k.Limits.Due(facts); why != "" && time.Now().After(notBefore) {
			k.Log.Info("the engine hands over", "why", why)
			if k.startSuccessor() {
				k.drain(stop, k.Longest)
				return
			}
			notBefore = time.Now().Add(backoff(failures))
			failures++
		}
		select {
		case <-stop:
			k.Log.Info("the engine ends: it was stopped")
			k.drain(stop, k.Patience)
			return
		case <-changed:
		case <-tick.C:
		}
		if time.Since(measured) >= memoryInterval {
			memory, measured = k.Engine.Memory(), time.Now()
		}
	}
}

func (k Supervisor) startSuccessor() bool {
	ctx, cancel := context.WithTimeout(context.Background(), successorTime)
	defer cancel()
	if err := k.Engine.StartSuccessor(ctx); err != nil {
		k.Log.Error("cannot start a successor", "error", err)
		return false
	}
	return true
}

// drain waits for running commands, at most for a limit (0: none), and from when the engine is stopped at most for
// Patience.
func (k Supervisor) drain(stop <-chan struct{}, limit time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if limit > 0 {
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	drained := make(chan struct{})
	defer close(drained)
	go func() {
		select {
		case <-stop:
		case <-drained:
			return
		}
		select {
		case <-time.After(k.Patience):
			cancel()
		case <-drained:
		}
	}()
	if left := k.Engine.Drain(ctx); left > 0 {
		k.Log.Error("the engine ends with commands that did not end after two interrupts", "commands", left)
	} else if ctx.Err() != nil {
		k.Log.Warn("the engine interrupted its commands: the time to drain was over", "seconds", limit.Seconds())
	}
}

// AwaitEnd returns a channel that is closed when the owner's pipe ends.
func AwaitEnd(pipe io.Reader) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, pipe) // an error ends the pipe, too
		close(ended)
	}()
	return ended
}
