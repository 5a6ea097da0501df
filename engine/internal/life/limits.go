// Package life is about the engine's process: how long it lives, how it hands over, and what must not outlive it.
//
// Pulumi's engine of the pinned version leaks with each operation (connections, goroutines, memory), so a process serves
// only so many operations. Then it starts its successor, which takes the socket's path over by a rename when it is
// ready; the old one finishes what it runs and ends. A client notices nothing.
package life

import (
	"fmt"
	"time"
)

// Limits are when an engine hands over to a successor; zero means never.
type Limits struct {
	Operations int
	Memory     int64 // bytes, of the engine and its providers
	Age        time.Duration
	Idle       time.Duration // after which it ends without a successor
}

// Facts are what limits are compared with.
type Facts struct {
	Operations int // begun
	Running    int // commands
	Memory     int64
	Age        time.Duration
	IdleSince  time.Duration // how long ago the last command ended
}

// leastOperations is how many operations an engine serves before its memory counts: one that needs more than its limit
// for what it has to do would otherwise hand over without end.
const leastOperations = 50

// Due says why the engine must hand over; empty if it need not.
func (l Limits) Due(facts Facts) string {
	switch {
	case l.Operations > 0 && facts.Operations >= l.Operations:
		return fmt.Sprintf("it has served %d operations", facts.Operations)
	case l.Memory > 0 && facts.Memory >= l.Memory && facts.Operations >= leastOperations:
		return fmt.Sprintf("it and its providers take %d MiB", facts.Memory>>20)
	case l.Age > 0 && facts.Age >= l.Age:
		return fmt.Sprintf("it is %s old", facts.Age.Round(time.Second))
	}
	return ""
}

// Done tells whether nobody has needed the engine for long enough.
func (l Limits) Done(facts Facts) bool {
	return l.Idle > 0 && facts.Running == 0 && facts.IdleSince >= l.Idle
}
