// Package wire defines the protocol on the engine's socket. Each connection runs one command.
//
// The client sends a Request as one line of JSON, and may send Signal lines at any time after it. The engine sends
// Reply lines. If it does not begin the command, it sends one reply, Unserved or Retry. Otherwise it sends Begun, then
// any number of pieces of output, then Exit. If the stream ends before Begun, nothing was done.
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

// Version is the version of the protocol. Requests with another version are not served.
const Version = 1

// maxRequest limits the length of a request in bytes. It leaves room for a state file on standard input.
const maxRequest = 256 << 20

// maxPiece limits the length of the output in one reply, in bytes.
const maxPiece = 64 << 10

// maxSignal limits the length of a signal line in bytes.
const maxSignal = 4 << 10

// Request describes one command, as a start of `pulumi` would.
type Request struct {
	// Version is the version of the protocol that the client uses.
	Version int `json:"version"`
	// Args are the arguments, without the name of the program.
	Args []string `json:"args"`
	// Cwd is the absolute path of the working directory.
	Cwd string `json:"cwd"`
	// Stdin is the complete standard input.
	Stdin string `json:"stdin,omitempty"`
}

// Signal is a line that a client may send while its command runs.
type Signal struct {
	// Signal is "interrupt". The first one cancels the operation gracefully, the second one terminates it.
	Signal string `json:"signal"`
}

// Interrupt is the only signal.
const Interrupt = "interrupt"

// Reply is one line from the engine. Exactly one of its fields is set.
type Reply struct {
	// Begun is sent before a command has any effect or output.
	Begun bool `json:"begun,omitempty"`
	// Stdout and Stderr are pieces of output.
	Stdout string `json:"stdout,omitempty"`
	Stderr string `json:"stderr,omitempty"`
	// Unserved ends a command that this engine does not serve, before it has any effect. The text is the reason.
	Unserved string `json:"unserved,omitempty"`
	// Retry ends a command that arrived while the engine is ending. Another engine has replaced it. The text is the
	// reason.
	Retry string `json:"retry,omitempty"`
	// Exit ends a command that was begun. It is the exit code.
	Exit *int `json:"exit,omitempty"`
}

// Exit returns the last reply to a command that was begun.
func Exit(code int) Reply { return Reply{Exit: &code} }

// ErrBadRequest is wrapped by errors about invalid data from a client.
var ErrBadRequest = errors.New("not a request of this protocol")

// Reader reads the lines of a client.
type Reader struct{ lines *bufio.Reader }

// NewReader returns a reader for a connection.
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

// Signal waits for the next line.
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

// Writer sends replies. It is safe for concurrent use. After a failed write nothing more is sent, because the client
// has disconnected.
type Writer struct {
	mutex      sync.Mutex
	connection io.Writer
	begun      bool
	err        error
}

// NewWriter returns a writer for a connection.
func NewWriter(connection io.Writer) *Writer { return &Writer{connection: connection} }

// Begin notifies the client that its command begins. It must be called before the command has any effect. Output and Exit
// call it implicitly.
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
		panic(fmt.Sprintf("a reply cannot be encoded: %v", err))
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

// stream never fails. If the client has disconnected, the text is dropped and the operation continues. A long text is
// split, so that no line contains a complete state file.
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
