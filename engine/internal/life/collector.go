package life

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// Collector adjusts the memory limit of Go's garbage collector to what operations need.
//
// A process whose operations need more memory than the least limit gets twice of what lives: collections that free
// little would take half of its CPU time. GOMEMLIMIT and GOGC in the environment have precedence.
type Collector struct {
	least int64 // bytes
	fixed bool
	limit atomic.Int64
}

// NewCollector sets the least memory limit in bytes, and by how much the heap may grow between two collections in
// percent of what lives.
func NewCollector(least int64, growth int) *Collector {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(growth)
	}
	found := &Collector{least: least, fixed: os.Getenv("GOMEMLIMIT") != ""}
	found.Adjust()
	return found
}

// Adjust sets the limit for what lives now. It is safe for concurrent use.
func (c *Collector) Adjust() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	limit := max(c.least, 2*int64(live[0].Value.Uint64()))
	if !c.fixed && c.limit.Swap(limit) != limit { // a change stops all goroutines for a moment
		debug.SetMemoryLimit(limit)
	}
}
