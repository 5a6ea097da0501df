// Package life controls the lifetime of the engine's process: when it ends, how it hands over to a successor, and how
// the locks of a dead engine are removed.
//
// The pinned version of Pulumi's engine leaks connections, goroutines and memory with each operation, so a process
// serves a limited number of operations. Then it starts a successor, which replaces the socket by a rename when it is
// ready. The old process completes its commands and ends. Clients do not notice the handover.
package life

import (
	"fmt"
	"time"
)

// Limits determine when an engine hands over to a successor. Zero means no limit.
type Limits struct {
	Operations int
	Memory     int64 // of the engine and its providers, in bytes
	Age        time.Duration
	Idle       time.Duration // time without a command after which it ends without a successor
}

// Facts are the measurements that are compared with the limits.
type Facts struct {
	Operations int // that were begun
	Running    int // commands that run now
	Memory     int64
	Age        time.Duration
	IdleSince  time.Duration // how long ago the last command ended
}

// leastOperations is the number of operations before the limit of memory applies. Without it, engines whose operations
// need more memory than the limit would hand over again and again.
const leastOperations = 50

// While commands run, the engine and its successor are in memory together, and new commands wait for the successor. So
// an engine that reaches its limit of memory goes on until no command has run for a while, or until it exceeds the limit
// by a part of it.
const (
	calm       = time.Second
	moreMemory = 8 // an eighth
)

// Due returns why the engine must hand over, or an empty string if it need not.
func (l Limits) Due(facts Facts) string {
	memory := l.Memory
	if facts.Running > 0 || facts.IdleSince < calm {
		memory += memory / moreMemory
	}
	switch {
	case l.Operations > 0 && facts.Operations >= l.Operations:
		return fmt.Sprintf("it has served %d operations", facts.Operations)
	case memory > 0 && facts.Memory >= memory && facts.Operations >= leastOperations:
		return fmt.Sprintf("it and its providers use %d MiB", facts.Memory>>20)
	case l.Age > 0 && facts.Age >= l.Age:
		return fmt.Sprintf("it is %s old", facts.Age.Round(time.Second))
	}
	return ""
}

// spare reports whether the engine would hand over because of its memory, and has time to collect its garbage first.
func (l Limits) spare(memory int64, running int, idle time.Duration) bool {
	return l.Memory > 0 && memory >= l.Memory && running == 0 && idle >= calm
}

// Expired reports whether the engine has been idle for too long.
func (l Limits) Expired(facts Facts) bool {
	return l.Idle > 0 && facts.Running == 0 && facts.IdleSince >= l.Idle
}
