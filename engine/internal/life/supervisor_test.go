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

// fakeEngine runs as many commands as the test sets.
type fakeEngine struct {
	mutex      sync.Mutex
	running    int
	operations int
	changed    chan struct{}
	memory     int64
	garbage    int64         // the part of the memory that a release frees
	releases   chan struct{} // has a value for each release
	measured   chan struct{} // has a value after the first measurement of memory
	successors int
	failures   int // of starting a successor
	drained    chan time.Duration
}

func newFakeEngine() *fakeEngine {
	return &fakeEngine{
		changed: make(chan struct{}), drained: make(chan time.Duration, 1), measured: make(chan struct{}, 1),
		releases: make(chan struct{}, 9),
	}
}

func (f *fakeEngine) set(running, operations int) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.running, f.operations = running, operations
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fakeEngine) engine() Engine {
	return Engine{
		Counts: func() (int, int, <-chan struct{}) {
			f.mutex.Lock()
			defer f.mutex.Unlock()
			return f.running, f.operations, f.changed
		},
		Memory: func() int64 {
			f.mutex.Lock()
			defer f.mutex.Unlock()
			select {
			case f.measured <- struct{}{}:
			default:
			}
			return f.memory
		},
		Release: func() {
			f.mutex.Lock()
			defer f.mutex.Unlock()
			f.memory -= f.garbage
			f.garbage = 0
			f.releases <- struct{}{}
		},
		StartSuccessor: func(context.Context) error {
			f.mutex.Lock()
			defer f.mutex.Unlock()
			if f.failures > 0 {
				f.failures--
				return errors.New("no memory")
			}
			f.successors++
			return nil
		},
		Drain: func(ctx context.Context) int {
			patience := time.Duration(-1)
			if end, ok := ctx.Deadline(); ok {
				patience = time.Until(end).Round(time.Second)
			}
			running := 1
			for running > 0 && ctx.Err() == nil {
				var changed <-chan struct{}
				running, _, changed = f.engine().Counts()
				if running > 0 {
					select {
					case <-changed:
					case <-ctx.Done():
					}
				}
			}
			f.drained <- patience
			return running
		},
	}
}

func supervise(f *fakeEngine, limits Limits, stop <-chan struct{}) (ended chan struct{}) {
	return superviseTicking(f, limits, time.Millisecond, stop)
}

func superviseTicking(f *fakeEngine, limits Limits, tick time.Duration, stop <-chan struct{}) (ended chan struct{}) {
	return superviseWith(f, Supervisor{Limits: limits, Tick: tick, Patience: 20 * time.Second}, stop)
}

func superviseWith(f *fakeEngine, supervisor Supervisor, stop <-chan struct{}) (ended chan struct{}) {
	supervisor.Engine, supervisor.Log = f.engine(), slog.New(slog.DiscardHandler)
	ended = make(chan struct{})
	go func() {
		supervisor.Run(stop)
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

func TestAnEngineHandsOverAndCompletesItsCommands(t *testing.T) {
	f := newFakeEngine()
	ended := supervise(f, Limits{Operations: 3}, nil)
	f.set(1, 3)
	select {
	case <-ended:
		t.Fatal("it ended while a command ran")
	case <-time.After(50 * time.Millisecond): // it must not end
	}
	f.set(0, 3)
	await(t, "the engine ends", ended)
	if patience := <-f.drained; patience != -1 || f.successors != 1 {
		t.Errorf("patience %v, successors %d", patience, f.successors)
	}
}

func TestMemoryIsMeasuredWithOperationsBetweenTicks(t *testing.T) {
	f := newFakeEngine()
	ended := superviseTicking(f, Limits{Memory: 100}, time.Hour, nil)
	await(t, "the first measurement", f.measured)
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

func TestAnIdleEngineCollectsItsGarbageBeforeItHandsOver(t *testing.T) {
	f := newFakeEngine()
	f.operations, f.memory, f.garbage = leastOperations, 100, 1
	ended := supervise(f, Limits{Memory: 100}, nil)
	await(t, "the release", f.releases)
	select {
	case <-ended:
		t.Fatal("it handed over because of garbage")
	case <-time.After(50 * time.Millisecond): // it must not end
	}
	f.mutex.Lock()
	f.memory = 100 // that lives
	f.mutex.Unlock()
	await(t, "the engine ends", ended)
	if len(f.releases) != 0 {
		t.Error("it collected again without a command in between")
	}
}

func TestAnEngineWithoutASuccessorContinues(t *testing.T) {
	f := newFakeEngine()
	f.failures = 1
	stop := make(chan struct{})
	ended := supervise(f, Limits{Operations: 3}, stop)
	f.set(0, 3)
	for f.failuresLeft() > 0 {
		time.Sleep(time.Millisecond)
	}
	select {
	case <-ended:
		t.Fatal("it ended without a successor")
	case <-time.After(50 * time.Millisecond): // it must not end
	}
	close(stop)
	await(t, "the engine ends", ended)
	if f.successors != 0 {
		t.Error("it retried immediately")
	}
}

func (f *fakeEngine) failuresLeft() int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.failures
}

func TestAStoppedEngineGivesItsCommandsTime(t *testing.T) {
	f := newFakeEngine()
	stop := make(chan struct{})
	ended := supervise(f, Limits{}, stop)
	close(stop)
	await(t, "the engine ends", ended)
	if f.successors != 0 {
		t.Error("a stopped engine has a successor")
	}
}

func TestAStoppedEngineDoesNotWaitForeverForItsCommands(t *testing.T) {
	f := newFakeEngine()
	stop := make(chan struct{})
	f.set(1, 1)
	ended := superviseWith(f, Supervisor{Tick: time.Millisecond, Patience: 20 * time.Millisecond}, stop)
	close(stop)
	await(t, "the engine ends", ended)
}

func TestADrainEndsAtItsLimitAlthoughACommandRuns(t *testing.T) {
	f := newFakeEngine()
	f.set(1, 3)
	ended := superviseWith(f, Supervisor{
		Limits: Limits{Operations: 3}, Tick: time.Millisecond, Patience: time.Hour, Longest: 20 * time.Millisecond,
	}, nil)
	await(t, "the engine ends", ended)
	if f.successors != 1 {
		t.Errorf("successors %d", f.successors)
	}
}

func TestADrainingEngineThatIsStoppedDoesNotWaitForTheLimit(t *testing.T) {
	f := newFakeEngine()
	f.set(1, 3)
	stop := make(chan struct{})
	ended := superviseWith(f, Supervisor{
		Limits: Limits{Operations: 3}, Tick: time.Millisecond, Patience: 20 * time.Millisecond, Longest: time.Hour,
	}, stop)
	for f.successorsStarted() == 0 {
		time.Sleep(time.Millisecond)
	}
	close(stop)
	await(t, "the engine ends", ended)
}

func (f *fakeEngine) successorsStarted() int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.successors
}

func TestAnIdleEngineEnds(t *testing.T) {
	f := newFakeEngine()
	await(t, "the engine ends", supervise(f, Limits{Idle: time.Millisecond}, nil))
	if f.successors != 0 {
		t.Error("an idle engine has a successor")
	}
}

func TestTheEndOfTheOwnersPipeIsNoticed(t *testing.T) {
	read, write := io.Pipe()
	ended := AwaitEnd(read)
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, "the end", ended)
}
