// Package server takes commands from a unix socket, and ends them in good order.
//
// Each connection is one command and has two goroutines: one runs the command, the other listens for interrupts and
// for the client's end. Nothing of one connection can hold up another.
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

// requestTime is how long a client may take to send its request.
const requestTime = 10 * time.Second

// Pauses between attempts to take a connection when there are no descriptors.
const (
	shortestPause = 10 * time.Millisecond
	longestPause  = time.Second
)

var tooLate = wire.Reply{Retry: "this engine is about to end"}

// Answer is how a command ended: Unserved says why it was not begun, or is empty.
type Answer struct {
	Exit     int
	Unserved string
}

// Handler runs one command. Each value in interrupts is one interrupt of the client; the second is final.
// It must be safe for many goroutines.
type Handler func(request wire.Request, output *wire.Writer, interrupts <-chan struct{}) Answer

// Control answers a question about the engine itself, which is no operation and is answered at any time: the text for
// standard output, and whether the arguments are such a question.
type Control func(arguments []string) (string, bool)

// Options say how a server behaves.
type Options struct {
	// Control may be nil.
	Control Control

	// Grace is how long an operation may take to end by itself after its first interrupt, if its client is gone or
	// the engine ends; then comes the second.
	Grace time.Duration
	// Last is how long an operation that was told to end at once may still take, when the engine ends.
	Last time.Duration
}

// Server runs commands. Make one with New.
type Server struct {
	handle  Handler
	options Options
	log     *slog.Logger

	mutex     sync.Mutex
	sessions  map[*session]struct{}
	answering int // questions about the engine
	served    int
	draining  bool
	over      bool          // drained: who would begin anything now would be cut off by the process's end
	changed   chan struct{} // closed and replaced whenever a command begins, or something ends
}

// New returns a server that runs commands with a handler.
func New(handle Handler, options Options, log *slog.Logger) *Server {
	return &Server{
		handle:   handle,
		options:  options,
		log:      log,
		sessions: map[*session]struct{}{},
		changed:  make(chan struct{}),
	}
}

// Serve takes connections until the listener is closed. If the machine has no descriptors left it waits for some.
func (s *Server) Serve(listener *net.UnixListener) error {
	pause := shortestPause
	for {
		connection, err := listener.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
			s.log.Error("no connection can be taken", "why", err, "again in", pause)
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
	if err := samePerson(connection); err != nil {
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
		why := fmt.Sprintf("this engine speaks version %d of the protocol, not %d", wire.Version, request.Version)
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
	// Only then is it over: who waits for the last operation must not end before its client has the result
	defer s.end(session)
	defer session.finish()
	if answer.Unserved != "" {
		_ = writer.Send(wire.Reply{Unserved: answer.Unserved})
		return
	}
	_ = writer.Send(wire.Exit(answer.Exit))
}

// answer deals with a question about the engine itself, if the request is one. Draining waits for the answer: the
// question may be the wish to end.
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

// run calls the handler; its panic is its own command's failure and nobody else's.
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

// Counts are how many commands a server runs and has taken.
type Counts struct {
	Running  int
	Served   int
	Draining bool
}

// Counts returns the present counts, and a channel that is closed when they change.
func (s *Server) Counts() (Counts, <-chan struct{}) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return Counts{len(s.sessions), s.served, s.draining}, s.changed
}

// Drain refuses new commands and waits for those that run: first until the context ends, then it interrupts them,
// and in the end cuts them off. It returns how many did not end.
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
	s.each((*session).hurry)
	last, cancel := context.WithTimeout(context.Background(), s.options.Last)
	defer cancel()
	s.idle(last)
	counts, _ := s.Counts()
	return counts.Running
}

// idle waits until nothing runs, and says whether that came before the context's end. Then nothing begins any more.
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

// quiet ends the server if nothing runs; else it returns what is closed when that changes.
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
