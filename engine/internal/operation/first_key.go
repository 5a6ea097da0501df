package operation

import (
	"context"
	"time"
)

// keyDerivation limits the time that operations wait for the first one to derive its key.
const keyDerivation = time.Second

// firstKey lets the first operation of a process derive the key of its passphrase before the others begin.
//
// Pulumi keeps the keys that it has derived, but operations that begin together each derive the same one, which takes a
// sixth of a second of CPU time. Operations with another key, or with a slow secrets provider, only begin later.
type firstKey struct {
	turn chan struct{} // has a value while nobody derives the first key; closed when somebody has
}

var keys = newFirstKey()

func newFirstKey() firstKey {
	turn := make(chan struct{}, 1)
	turn <- struct{}{}
	return firstKey{turn}
}

// await waits for the turn of an operation, and returns the function to call with whether it got its key.
func (f firstKey) await(ctx context.Context, limit time.Duration) (end func(found bool)) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case _, mine := <-f.turn:
		if !mine {
			return func(bool) {}
		}
		return func(found bool) {
			if found {
				close(f.turn)
			} else {
				f.turn <- struct{}{}
			}
		}
	case <-timer.C:
	case <-ctx.Done():
	}
	return func(bool) {}
}
