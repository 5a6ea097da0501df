package life

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"
)

const deadline = 20 * time.Second

// fakeServer runs as many commands as it is told.
type fakeServer struct {
	mutex      sync.Mutex
	running    int
	operations int
	changed    chan struct{}
	memory     int64
	looked     chan struct{} // holds something after the first look at memory
	successors int
	failures   int // of starting a successor
	drained    chan time.Duration
}

func newFakeServer() *fakeServer {
	return &fakeServer{
		changed: make(chan struct{}), drained: make(chan time.Duration, 1), looked: make(chan struct{}, 1),
	}
}

func (f *fakeServer) set(running, operations int) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.running, f.operations = running, operations
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fakeServer) served() Served {
	return Served{
		Counts: func() (int, int, <-chan struct{}) {
			f.mutex.Lock()
			defer f.mutex.Unlock()
			return f.running, f.operations, f.changed
		},
		Memory: func() int64 {
			f.mutex.Lock()
			defer f.mutex.Unlock()
			select {
			case f.looked <- struct{}{}:
			default:
			}
			return f.memory
		},
		Succeed: func(context.Context) error {
			f.mutex.Lock()
			defer f.mutex.Unlock()
			if f.failures > 0 {
				f.failures--
				return errors.New("no room")
			}
			f.successors++
			return nil
		},
		Drain: func(ctx context.Context) {
			patience := time.Duration(-1)
			if end, ok := ctx.Deadline(); ok {
				patience = time.Until(end).Round(time.Second)
			}
			for running := 1; running > 0 && ctx.Err() == nil; {
				var changed <-chan struct{}
				running, _, changed = f.served().Counts()
				if running > 0 {
					select {
					case <-changed:
					case <-ctx.Done():
					}
				}
			}
			f.drained <- patience
		},
	}
}

func keep(f *fakeServer, limits Limits, stop <-chan struct{}) (ended chan struct{}) {
	return keepTicking(f, limits, time.Millisecond, stop)
}

func keepTicking(f *fakeServer, limits Limits, tick time.Duration, stop <-chan struct{}) (ended chan struct{}) {
	keeper := Keeper{
		Limits: limits, Served: f.served(), Log: slog.New(slog.DiscardHandler), Tick: tick, Patience: 20 * time.Second,
	}
	ended = make(chan struct{})
	go func() {
		keeper.Keep(stop)
		close(ended)
	}()
	return ended
}

func await[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(deadline):
		t.Fatalf("never: %s", what)
		panic("unreachable")
	}
}

func TestAnEngineHandsOverAndFinishesWhatRuns(t *testing.T) {
	f := newFakeServer()
	ended := keep(f, Limits{Operations: 3}, nil)
	f.set(1, 3)
	select {
	case <-ended:
		t.Fatal("it ended while a command ran")
	case <-time.After(50 * time.Millisecond): // it must not
	}
	f.set(0, 3)
	await(t, "the engine ends", ended)
	if patience := <-f.drained; patience != -1 || f.successors != 1 {
		t.Errorf("patience %v, successors %d", patience, f.successors)
	}
}

func TestMemoryIsSeenWithOperationsBetweenTicks(t *testing.T) {
	f := newFakeServer()
	ended := keepTicking(f, Limits{Memory: 100}, time.Hour, nil)
	await(t, "the first look", f.looked)
	f.mutex.Lock()
	f.memory = 100
	f.mutex.Unlock()
	operations := time.NewTicker(10 * time.Millisecond)
	defer operations.Stop()
	for number, end := leastOperations, time.After(deadline); ; number++ {
		select {
		case <-ended:
			return
		case <-end:
			t.Fatal("never: the engine hands over")
		case <-operations.C:
			f.set(0, number)
		}
	}
}

func TestAnEngineWithoutASuccessorGoesOn(t *testing.T) {
	f := newFakeServer()
	f.failures = 1
	stop := make(chan struct{})
	ended := keep(f, Limits{Operations: 3}, stop)
	f.set(0, 3)
	for f.left() > 0 {
		time.Sleep(time.Millisecond)
	}
	select {
	case <-ended:
		t.Fatal("it ended without a successor")
	case <-time.After(50 * time.Millisecond): // it must not
	}
	close(stop)
	await(t, "the engine ends", ended)
	if f.successors != 0 {
		t.Error("it tried again at once")
	}
}

func (f *fakeServer) left() int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.failures
}

func TestAnEngineThatIsToldToStopHasPatienceWithWhatRuns(t *testing.T) {
	f := newFakeServer()
	stop := make(chan struct{})
	ended := keep(f, Limits{}, stop)
	close(stop)
	await(t, "the engine ends", ended)
	if patience := <-f.drained; patience != 20*time.Second {
		t.Errorf("patience %v", patience)
	}
}

func TestAnIdleEngineEnds(t *testing.T) {
	f := newFakeServer()
	await(t, "the engine ends", keep(f, Limits{Idle: time.Millisecond}, nil))
	if f.successors != 0 {
		t.Error("an idle engine has a successor")
	}
}

func TestTheEndOfAnOwnersPipeIsSeen(t *testing.T) {
	read, write := io.Pipe()
	ended := AwaitEnd(read)
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, "the end", ended)
}
