package server

import (
	"net"
	"runtime/debug"
	"sync"
	"time"

	"reside.dev/engine/internal/wire"
)

// session is one running command.
type session struct {
	connection *net.UnixConn
	grace      time.Duration
	interrupts chan struct{}
	done       chan struct{}
	once       sync.Once
}

func newSession(connection *net.UnixConn, grace time.Duration) *session {
	return &session{
		connection: connection,
		grace:      grace,
		// Only two interrupts have an effect: the first cancels, the second terminates
		interrupts: make(chan struct{}, 2),
		done:       make(chan struct{}),
	}
}

// listen forwards the client's signals. If the client disconnects, listen interrupts the command, and again after the
// grace period.
func (s *session) listen(reader *wire.Reader) {
	for {
		if _, err := reader.Signal(); err != nil {
			break
		}
		s.interrupt()
	}
	select {
	case <-s.done:
		return
	default:
		s.interrupt()
	}
	timer := time.NewTimer(s.grace)
	defer timer.Stop()
	select {
	case <-s.done:
	case <-timer.C:
		s.interrupt()
	}
}

func (s *session) interrupt() {
	select {
	case s.interrupts <- struct{}{}:
	default: // two are pending
	}
}

// expireWrites ends writes to a client that does not read, because they would block the operation.
func (s *session) expireWrites() {
	_ = s.connection.SetWriteDeadline(time.Now().Add(time.Second))
}

func (s *session) finish() {
	s.once.Do(func() { close(s.done) })
}

func stack() string { return string(debug.Stack()) }
