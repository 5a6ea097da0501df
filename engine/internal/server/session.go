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
		// Two are all that count: the first asks, the second forces
		interrupts: make(chan struct{}, 2),
		done:       make(chan struct{}),
	}
}

// listen passes the client's signals on. A client that goes away meant to stop what it asked for: that is an interrupt,
// and a second after the grace.
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
	default: // two wait already
	}
}

// hurry ends writes that wait for a client which does not read: the operation behind them could not end otherwise.
func (s *session) hurry() {
	_ = s.connection.SetWriteDeadline(time.Now().Add(time.Second))
}

func (s *session) finish() {
	s.once.Do(func() { close(s.done) })
}

func stack() string { return string(debug.Stack()) }
