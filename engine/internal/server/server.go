// Package server accepts commands on a unix socket and shuts down gracefully.
//
// Each connection runs one command and has two goroutines. One runs the command; the other waits for interrupts and for
// the client to disconnect. No connection can block another one.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"reside.dev/engine/internal/wire"
)

// requestTime limits the time that a client may take to send its request.
const requestTime = 10 * time.Second

// Back-off of accepting connections while no file descriptors are free.
const (
	shortestPause = 10 * time.Millisecond
	longestPause  = time.Second
)

var tooLate = wire.Reply{Retry: "this engine is ending"}

// Answer is the result of a command. Unserved is the reason why it was not begun; it is empty if the command ran.
type Answer struct {
	Exit     int
	Unserved string
}

// Handler runs one command. Each value in interrupts is one interrupt of the client; the second one is the last.
// It must be safe for concurrent use.
type Handler func(request wire.Request, output *wire.Writer, interrupts <-chan struct{}) Answer

// Control handles a command about the engine itself. Such a command is not an operation and runs at any time. Control
// returns the text for standard output, and whether the arguments are such a command.
type Control func(arguments []string) (string, bool)

// Options are the settings of a server.
type Options struct {
	// Control may be nil.
	Control Control

	// Grace is the time between the first and the second interrupt of an operation, if its client has disconnected or
	// the engine is ending.
	Grace time.Duration
	// Last is the time that an operation may take after the second interrupt when the engine is ending.
	Last time.Duration
}

// Server runs commands. Create one with New.
type Server struct {
	handle  Handler
	options Options
	log     *slog.Logger

	mutex     sync.Mutex
	sessions  map[*session]struct{}
	answering int // running control commands
	served    int
	draining  bool
	over      bool          // drained: the process ends, so nothing may begin
	changed   chan struct{} // closed and replaced whenever a command begins, or something ends
}

// New returns a server whose commands are run by a handler.
func New(handle Handler, options Options, log *slog.Logger) *Server {
	return &Server{
		handle:   handle,
		options:  options,
		log:      log,
		sessions: map[*session]struct{}{},
		changed:  make(chan struct{}),
	}
}

// Serve accepts connections until the listener is closed. While no file descriptors are free, it retries.
func (s *Server) Serve(listener *net.UnixListener) error {
	pause := shortestPause
	for {
		connection, err := listener.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
			s.log.Error("cannot accept a connection", "why", err, "retry after", pause)
			time.Sleep(pause)
			pause = min(2*pause, longestPause)
		case err != nil:
			return fmt.Errorf("accept: %w", err)
		default:
			pause = shortestPause
			go s.accept(connection)
		}
	}
}

func (s *Server) accept(connection *net.UnixConn) {
	defer connection.Close()
	if err := checkUser(connection); err != nil {
		s.log.Warn("refused a connection", "why", err)
		return
	}
	reader, writer := wire.NewReader(connection), wire.NewWriter(connection)
	if err := connection.SetReadDeadline(time.Now().Add(requestTime)); err != nil {
		return
	}
	request, err := reader.Request()
	if err != nil {
		if errors.Is(err, wire.ErrBadRequest) {
			_ = writer.Send(wire.Reply{Unserved: err.Error()})
		}
		return
	}
	if request.Version != wire.Version {
		why := fmt.Sprintf("this engine uses version %d of the protocol, not %d", wire.Version, request.Version)
		_ = writer.Send(wire.Reply{Unserved: why})
		return
	}
	if err := connection.SetReadDeadline(time.Time{}); err != nil {
		return
	}
	if s.answer(request, writer) {
		return
	}
	session := newSession(connection, s.options.Grace)
	if !s.begin(session) {
		_ = writer.Send(tooLate)
		return
	}
	go session.listen(reader)
	answer := s.run(request, writer, session)
	// Deferred, so that a server that waits for its last command ends only after the client has the result.
	defer s.end(session)
	defer session.finish()
	if answer.Unserved != "" {
		_ = writer.Send(wire.Reply{Unserved: answer.Unserved})
		return
	}
	_ = writer.Send(wire.Exit(answer.Exit))
}

// answer runs the request if it is a control command, and returns whether it is one. Draining waits for it, because it
// may be the command that stops the engine.
func (s *Server) answer(request wire.Request, writer *wire.Writer) bool {
	if s.options.Control == nil {
		return false
	}
	if !s.ask() {
		_ = writer.Send(tooLate)
		return true
	}
	defer s.answered()
	text, known := s.options.Control(request.Args)
	if known {
		_, _ = io.WriteString(writer.Stdout(), text)
		_ = writer.Send(wire.Exit(0))
	}
	return known
}

// run calls the handler. If it panics, only its own command fails.
func (s *Server) run(request wire.Request, writer *wire.Writer, session *session) (answer Answer) {
	defer func() {
		if cause := recover(); cause != nil {
			s.log.Error("a command panicked", "panic", fmt.Sprint(cause), "stack", stack())
			_ = writer.Send(wire.Reply{Stderr: fmt.Sprintf("error: the engine failed: %v\n", cause)})
			answer = Answer{Exit: 255}
		}
	}()
	return s.handle(request, writer, session.interrupts)
}

func (s *Server) ask() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.over {
		return false
	}
	s.answering++
	return true
}

func (s *Server) answered() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.answering--
	s.notify()
}

func (s *Server) begin(session *session) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.draining {
		return false
	}
	s.sessions[session] = struct{}{}
	s.served++
	s.notify()
	return true
}

func (s *Server) end(session *session) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.sessions, session)
	s.notify()
}

func (s *Server) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Counts are the numbers of commands that a server runs and has accepted.
type Counts struct {
	Running  int
	Served   int
	Draining bool
}

// Counts returns the current counts, and a channel that is closed when they change.
func (s *Server) Counts() (Counts, <-chan struct{}) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return Counts{len(s.sessions), s.served, s.draining}, s.changed
}

// Drain refuses new commands and waits for running ones. When the context ends it interrupts them, and interrupts them
// again after Grace. It returns how many have not ended.
func (s *Server) Drain(patience context.Context) int {
	s.mutex.Lock()
	s.draining = true
	s.notify()
	s.mutex.Unlock()
	if s.idle(patience) {
		return 0
	}
	s.each((*session).interrupt)
	grace, cancel := context.WithTimeout(context.Background(), s.options.Grace)
	defer cancel()
	if s.idle(grace) {
		return 0
	}
	s.each((*session).interrupt)
	s.each((*session).expireWrites)
	last, cancel := context.WithTimeout(context.Background(), s.options.Last)
	defer cancel()
	s.idle(last)
	counts, _ := s.Counts()
	return counts.Running
}

// idle waits until nothing runs. It returns false if the context ends first. After it has returned true, nothing can
// begin.
func (s *Server) idle(ctx context.Context) bool {
	for {
		changed := s.quiet()
		if changed == nil {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// quiet ends the server if nothing runs. Otherwise it returns a channel that is closed when that may have changed.
func (s *Server) quiet() <-chan struct{} {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.sessions)+s.answering > 0 {
		return s.changed
	}
	s.over = true
	return nil
}

func (s *Server) each(do func(*session)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for session := range s.sessions {
		do(session)
	}
}
