// Package wire is what goes over the engine's socket: one connection is one command.
//
// The client sends a Request as one line of JSON, and may send Signal lines after it at any time. The engine answers
// with Reply lines. A command that is not begun has one: Unserved or Retry. One that is begun has Begun first, then any
// number of pieces of output, then Exit. So an end of the stream before Begun means that nothing has happened.
package wire

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"unicode/utf8"
)

// Version is the version of the protocol. A request of another version is not served.
const Version = 1

// maxRequest is the longest request that is read, in bytes: room for a state file on standard input.
const maxRequest = 256 << 20

// maxPiece is the longest piece of output in one reply, in bytes.
const maxPiece = 64 << 10

// maxSignal is the longest signal line that is read, in bytes.
const maxSignal = 4 << 10

// Request asks for one command, as if `pulumi` had been started.
type Request struct {
	// Version of the protocol that the client speaks.
	Version int `json:"version"`
	// Args are the arguments, without the program's name.
	Args []string `json:"args"`
	// Cwd is the absolute path of the working directory.
	Cwd string `json:"cwd"`
	// Stdin is all of standard input.
	Stdin string `json:"stdin,omitempty"`
}

// Signal is what a client may send while its command runs.
type Signal struct {
	// Signal is "interrupt": the first asks the operation to end soon, the second ends it at once.
	Signal string `json:"signal"`
}

// Interrupt is the only signal.
const Interrupt = "interrupt"

// Reply is one line from the engine: exactly one of its fields is set.
type Reply struct {
	// Begun comes before a command does or says anything.
	Begun bool `json:"begun,omitempty"`
	// Stdout and Stderr are pieces of output.
	Stdout string `json:"stdout,omitempty"`
	Stderr string `json:"stderr,omitempty"`
	// Unserved ends a command that this engine does not know, before it did anything; the text says why.
	Unserved string `json:"unserved,omitempty"`
	// Retry ends a command that came too late: the engine is about to end, and another has taken its place.
	Retry string `json:"retry,omitempty"`
	// Exit ends a command that ran: its exit code.
	Exit *int `json:"exit,omitempty"`
}

// Exit returns the last line of a command that ran.
func Exit(code int) Reply { return Reply{Exit: &code} }

// ErrBadRequest is wrapped by errors about what a client sent.
var ErrBadRequest = errors.New("not a request of this protocol")

// Reader reads what a client sends.
type Reader struct{ lines *bufio.Reader }

// NewReader returns a reader of a connection.
func NewReader(connection io.Reader) *Reader {
	return &Reader{bufio.NewReaderSize(connection, maxSignal)}
}

// Request reads the first line.
func (r *Reader) Request() (Request, error) {
	line, err := r.line(maxRequest)
	if err != nil {
		return Request{}, err
	}
	var request Request
	if err := json.Unmarshal(line, &request); err != nil {
		return Request{}, fmt.Errorf("%w: %v", ErrBadRequest, err)
	}
	return request, nil
}

// Signal waits for a further line.
func (r *Reader) Signal() (Signal, error) {
	line, err := r.line(maxSignal)
	if err != nil {
		return Signal{}, err
	}
	var signal Signal
	if err := json.Unmarshal(line, &signal); err != nil || signal.Signal != Interrupt {
		return Signal{}, fmt.Errorf("%w: the only signal is %q", ErrBadRequest, Interrupt)
	}
	return signal, nil
}

func (r *Reader) line(limit int) ([]byte, error) {
	var whole []byte
	for {
		part, err := r.lines.ReadSlice('\n')
		if len(whole)+len(part) > limit {
			return nil, fmt.Errorf("%w: a line longer than %d bytes", ErrBadRequest, limit)
		}
		whole = append(whole, part...)
		if err == nil {
			return whole, nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}

// Writer sends replies. It is safe for many goroutines. Once a write failed nothing more is sent: the client has gone,
// and its operation comes to its end without it.
type Writer struct {
	mutex      sync.Mutex
	connection io.Writer
	begun      bool
	err        error
}

// NewWriter returns a writer to a connection.
func NewWriter(connection io.Writer) *Writer { return &Writer{connection: connection} }

// Begin tells the client that its command is begun: call it before anything happens. Output and Exit do so themselves.
func (w *Writer) Begin() error { return w.Send(Reply{Begun: true}) }

// Send sends one reply.
func (w *Writer) Send(reply Reply) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if reply.Unserved == "" && reply.Retry == "" && !w.begun {
		w.begun = true
		w.write(Reply{Begun: true})
	}
	if !reply.Begun {
		w.write(reply)
	}
	return w.err
}

func (w *Writer) write(reply Reply) {
	if w.err != nil {
		return
	}
	line, err := json.Marshal(reply)
	if err != nil {
		panic(fmt.Sprintf("a reply is always JSON: %v", err))
	}
	_, w.err = w.connection.Write(append(line, '\n'))
}

// Stdout returns a writer whose text becomes the client's standard output.
func (w *Writer) Stdout() io.Writer {
	return stream(func(text string) { _ = w.Send(Reply{Stdout: text}) })
}

// Stderr returns a writer whose text becomes the client's standard error.
func (w *Writer) Stderr() io.Writer {
	return stream(func(text string) { _ = w.Send(Reply{Stderr: text}) })
}

// stream never fails: what nobody reads any more is dropped, an operation must not fail for that. A long text is sent in
// pieces, so that no line holds a whole state file.
type stream func(text string)

func (s stream) Write(text []byte) (int, error) {
	for rest := text; len(rest) > 0; {
		piece := rest
		if len(piece) > maxPiece {
			end := maxPiece
			for end > maxPiece-utf8.UTFMax && !utf8.RuneStart(rest[end]) {
				end--
			}
			piece = rest[:end]
		}
		s(string(piece))
		rest = rest[len(piece):]
	}
	return len(text), nil
}
