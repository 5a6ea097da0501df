package life

import (
	"runtime"
	"runtime/debug"
	"testing"
)

const megabyte = 1 << 20

func restoreCollector(t *testing.T) {
	growth, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	t.Cleanup(func() {
		debug.SetGCPercent(growth)
		debug.SetMemoryLimit(limit)
	})
}

func TestTheMemoryLimitFollowsWhatLives(t *testing.T) {
	restoreCollector(t)
	t.Setenv("GOMEMLIMIT", "")
	t.Setenv("GOGC", "")
	c := NewCollector(64*megabyte, 300)
	if got := debug.SetMemoryLimit(-1); got != 64*megabyte {
		t.Errorf("%d at first", got)
	}
	if got := debug.SetGCPercent(300); got != 300 {
		t.Errorf("growth %d", got)
	}
	needed := make([]byte, 100*megabyte)
	runtime.GC()
	c.Adjust()
	if got := debug.SetMemoryLimit(-1); got < 200*megabyte || got > 250*megabyte {
		t.Errorf("%d with 100 MiB", got)
	}
	runtime.KeepAlive(needed)
	runtime.GC()
	c.Adjust()
	if got := debug.SetMemoryLimit(-1); got != 64*megabyte {
		t.Errorf("%d at the end", got)
	}
}

func TestTheEnvironmentHasPrecedence(t *testing.T) {
	restoreCollector(t)
	t.Setenv("GOMEMLIMIT", "1GiB")
	t.Setenv("GOGC", "50")
	before := debug.SetMemoryLimit(-1)
	NewCollector(64*megabyte, 300)
	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("limit %d", got)
	}
	if got := debug.SetGCPercent(100); got != 100 {
		t.Errorf("growth %d", got)
	}
}
