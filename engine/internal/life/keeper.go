package life

import (
	"context"
	"io"
	"log/slog"
	"time"
)

// Served is what a keeper must know of a server.
type Served struct {
	// Counts are how many commands run, how many operations were begun, and what is closed when that changes.
	Counts func() (running, operations int, changed <-chan struct{})
	// Memory is what the engine and its providers take, in bytes.
	Memory func() int64
	// Succeed starts a successor, which has the socket when it returns.
	Succeed func(context.Context) error
	// Drain takes no more commands, and waits for those that run until the context ends; then it interrupts them.
	Drain func(context.Context)
}

// Keeper decides when an engine ends.
type Keeper struct {
	Limits Limits
	Served Served
	Log    *slog.Logger
	// Tick is how often limits are looked at without an event.
	Tick time.Duration
	// Patience is how long running commands get when the engine is told to stop.
	Patience time.Duration
}

// lookAgain is the least time between looks at memory, which take a few milliseconds: many operations at once may add
// tens of MiB in a second.
const lookAgain = 250 * time.Millisecond

// successorTime is how long a successor may take to be ready.
const successorTime = 30 * time.Second

// Keep returns when the engine must end, with nothing running any more. stop is the wish of somebody outside.
func (k Keeper) Keep(stop <-chan struct{}) {
	begun, lastEnd, failures := time.Now(), time.Now(), 0
	var notBefore time.Time
	tick := time.NewTicker(k.Tick)
	defer tick.Stop()
	memory, looked := k.Served.Memory(), time.Now()
	for {
		running, operations, changed := k.Served.Counts()
		if running > 0 {
			lastEnd = time.Now()
		}
		facts := Facts{
			Operations: operations, Running: running, Memory: memory,
			Age: time.Since(begun), IdleSince: time.Since(lastEnd),
		}
		if k.Limits.Done(facts) {
			k.Log.Info("the engine ends: nobody needs it")
			k.drain(stop, -1)
			return
		}
		if why := k.Limits.Due(facts); why != "" && time.Now().After(notBefore) {
			k.Log.Info("the engine hands over", "why", why)
			if k.succeed() {
				k.drain(stop, -1)
				return
			}
			notBefore = time.Now().Add(backoff(failures))
			failures++
		}
		select {
		case <-stop:
			k.Log.Info("the engine ends: it was told to")
			k.drain(stop, k.Patience)
			return
		case <-changed:
		case <-tick.C:
		}
		if time.Since(looked) >= lookAgain {
			memory, looked = k.Served.Memory(), time.Now()
		}
	}
}

func (k Keeper) succeed() bool {
	ctx, cancel := context.WithTimeout(context.Background(), successorTime)
	defer cancel()
	if err := k.Served.Succeed(ctx); err != nil {
		k.Log.Error("no successor", "error", err)
		return false
	}
	return true
}

// drain waits for what runs: for ever if patience is negative, but not past a wish to stop.
func (k Keeper) drain(stop <-chan struct{}, patience time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if patience >= 0 {
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	} else {
		go func() {
			select {
			case <-stop:
				time.AfterFunc(k.Patience, cancel)
			case <-ctx.Done():
			}
		}()
	}
	k.Served.Drain(ctx)
}

// AwaitEnd closes the channel it returns when the owner's pipe ends.
func AwaitEnd(pipe io.Reader) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, pipe) // any end is the end
		close(ended)
	}()
	return ended
}
