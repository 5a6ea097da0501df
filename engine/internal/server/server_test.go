package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reside.dev/engine/internal/wire"
)

// patience is how long a test waits for an expected event, and short how long it waits for an unexpected one.
const (
	patience = 10 * time.Second
	short    = 20 * time.Millisecond
)

type fixture struct {
	*Server
	t       *testing.T
	address string
	log     *bytes.Buffer
	over    chan error
}

func serve(t *testing.T, handle Handler, options Options) *fixture {
	t.Helper()
	address := filepath.Join(t.TempDir(), "socket")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	made := &fixture{t: t, address: address, log: &bytes.Buffer{}, over: make(chan error, 1)}
	made.Server = New(handle, options, slog.New(slog.NewTextHandler(made.log, nil)))
	go func() { made.over <- made.Serve(listener) }()
	t.Cleanup(func() {
		listener.Close()
		if err := <-made.over; err != nil {
			t.Error(err)
		}
	})
	return made
}

type client struct {
	*net.UnixConn
	t     *testing.T
	lines *bufio.Scanner
}

func (f *fixture) connect() *client {
	f.t.Helper()
	connection, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: f.address, Net: "unix"})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { connection.Close() })
	connection.SetDeadline(time.Now().Add(patience))
	return &client{connection, f.t, bufio.NewScanner(connection)}
}

func (f *fixture) ask(args ...string) *client {
	made := f.connect()
	line, _ := json.Marshal(wire.Request{Version: wire.Version, Args: args, Cwd: "/"})
	made.send(string(line))
	return made
}

func (c *client) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// all returns everything that is sent until the server closes the connection.
func (c *client) all() string {
	var lines []string
	for c.lines.Scan() {
		lines = append(lines, c.lines.Text())
	}
	if err := c.lines.Err(); err != nil {
		c.t.Error(err)
	}
	return strings.Join(lines, "\n")
}

func (c *client) next() string {
	c.lines.Scan()
	return c.lines.Text()
}

func wait(t *testing.T, interrupts <-chan struct{}) {
	select {
	case <-interrupts:
	case <-time.After(patience):
		t.Error("no interrupt came")
	}
}

func TestACommandRuns(t *testing.T) {
	server := serve(t, func(request wire.Request, output *wire.Writer, _ <-chan struct{}) Answer {
		io.WriteString(output.Stdout(), strings.Join(request.Args, " ")+" in "+request.Cwd)
		return Answer{Exit: 3}
	}, Options{})
	if got := server.ask("up", "--yes").all(); got != `{"begun":true}`+"\n"+`{"stdout":"up --yes in /"}`+"\n"+`{"exit":3}` {
		t.Error(got)
	}
	if counts, _ := server.Counts(); counts.Served != 1 || counts.Running != 0 {
		t.Errorf("%+v", counts)
	}
}

func TestUnservedRequests(t *testing.T) {
	server := serve(t, func(wire.Request, *wire.Writer, <-chan struct{}) Answer { return Answer{Unserved: "not me"} }, Options{})
	if got := server.ask("config").all(); got != `{"unserved":"not me"}` {
		t.Error(got)
	}
	stranger := server.connect()
	stranger.send(`{"version":99,"args":[]}`)
	if got := stranger.all(); !strings.Contains(got, "unserved") || !strings.Contains(got, "99") {
		t.Error(got)
	}
	stranger = server.connect()
	stranger.send("hello")
	if got := stranger.all(); !strings.Contains(got, "unserved") {
		t.Error(got)
	}
}

func TestAPanicFailsItsOwnCommandOnly(t *testing.T) {
	server := serve(t, func(request wire.Request, _ *wire.Writer, _ <-chan struct{}) Answer {
		if len(request.Args) > 0 {
			panic("oh no")
		}
		return Answer{}
	}, Options{})
	if got := server.ask("up").all(); !strings.Contains(got, "oh no") || !strings.HasSuffix(got, `{"exit":255}`) {
		t.Error(got)
	}
	if got := server.ask().all(); !strings.HasSuffix(got, `{"exit":0}`) {
		t.Error(got)
	}
	if !strings.Contains(server.log.String(), "server_test.go") {
		t.Error("the log does not say where")
	}
}

func TestTwoInterrupts(t *testing.T) {
	server := serve(t, func(_ wire.Request, output *wire.Writer, interrupts <-chan struct{}) Answer {
		output.Begin()
		wait(t, interrupts)
		io.WriteString(output.Stdout(), "one")
		wait(t, interrupts)
		return Answer{Exit: 1}
	}, Options{Grace: time.Hour})
	asked := server.ask()
	asked.next()
	asked.send(`{"signal":"interrupt"}`)
	if got := asked.next(); got != `{"stdout":"one"}` {
		t.Error(got)
	}
	asked.send(`{"signal":"interrupt"}`)
	if got := asked.all(); got != `{"exit":1}` {
		t.Error(got)
	}
}

func TestADisconnectedClientInterruptsItsCommandTwice(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	server := serve(t, func(_ wire.Request, output *wire.Writer, interrupts <-chan struct{}) Answer {
		close(begun)
		wait(t, interrupts)
		wait(t, interrupts)
		close(ended)
		return Answer{}
	}, Options{Grace: short})
	asked := server.ask()
	<-begun
	asked.Close()
	wait(t, ended)
}

func TestASlowClientDoesNotBlockOthers(t *testing.T) {
	begun := make(chan struct{})
	server := serve(t, func(request wire.Request, output *wire.Writer, _ <-chan struct{}) Answer {
		if len(request.Args) > 0 {
			close(begun)
			for range 1000 {
				io.WriteString(output.Stdout(), strings.Repeat("x", 10_000))
			}
		}
		return Answer{}
	}, Options{Grace: short, Last: patience})
	slow := server.ask("much")
	<-begun
	if got := server.ask().all(); !strings.HasSuffix(got, `{"exit":0}`) {
		t.Error(got)
	}
	if counts, _ := server.Counts(); counts.Running != 1 {
		t.Errorf("%+v", counts)
	}
	// It never reads, so the server ends the write
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if remaining := server.Drain(ended); remaining != 0 {
		t.Errorf("%d commands still run", remaining)
	}
	slow.Close()
}

func TestDrainRefusesNewCommandsAndWaitsForRunningOnes(t *testing.T) {
	begun, finish := make(chan struct{}), make(chan struct{})
	server := serve(t, func(wire.Request, *wire.Writer, <-chan struct{}) Answer {
		close(begun)
		<-finish
		return Answer{Exit: 7}
	}, Options{Grace: time.Hour})
	running := server.ask()
	<-begun
	remaining := make(chan int)
	go func() { remaining <- server.Drain(context.Background()) }()
	for {
		counts, changed := server.Counts()
		if counts.Draining {
			break
		}
		select {
		case <-changed:
		case <-time.After(patience):
			t.Fatal("it does not drain")
		}
	}
	if got := server.ask().all(); !strings.HasPrefix(got, `{"retry":`) {
		t.Error(got)
	}
	close(finish)
	if got := running.all(); !strings.HasSuffix(got, `{"exit":7}`) {
		t.Error(got)
	}
	if count := <-remaining; count != 0 {
		t.Error(count)
	}
}

func TestDrainInterruptsAfterItsPatience(t *testing.T) {
	begun := make(chan struct{})
	server := serve(t, func(_ wire.Request, _ *wire.Writer, interrupts <-chan struct{}) Answer {
		close(begun)
		wait(t, interrupts)
		return Answer{Exit: 1}
	}, Options{Grace: patience})
	running := server.ask()
	<-begun
	patience, cancel := context.WithTimeout(context.Background(), short)
	defer cancel()
	if remaining := server.Drain(patience); remaining != 0 {
		t.Errorf("%d commands still run", remaining)
	}
	if got := running.all(); !strings.HasSuffix(got, `{"exit":1}`) {
		t.Error(got)
	}
}

func TestControlCommandsAreNotOperations(t *testing.T) {
	control := func(args []string) (string, bool) { return "well\n", len(args) == 1 && args[0] == "--engine-status" }
	server := serve(t, func(wire.Request, *wire.Writer, <-chan struct{}) Answer { return Answer{} }, Options{Control: control})
	if got := server.ask("--engine-status").all(); got != `{"begun":true}`+"\n"+`{"stdout":"well\n"}`+"\n"+`{"exit":0}` {
		t.Error(got)
	}
	if counts, _ := server.Counts(); counts.Served != 0 {
		t.Errorf("%+v", counts)
	}
}

func TestAControlCommandIsAnsweredBeforeTheServerEnds(t *testing.T) {
	asked, finish := make(chan struct{}), make(chan struct{})
	control := func([]string) (string, bool) {
		close(asked)
		<-finish
		return "stopping\n", true
	}
	server := serve(t, nil, Options{Control: control})
	question := server.ask("--engine-stop")
	<-asked
	now, cancel := context.WithCancel(context.Background())
	cancel()
	if server.idle(now) {
		t.Error("the server ended before it answered")
	}
	close(finish)
	server.Drain(context.Background())
	if got := question.all(); got != `{"begun":true}`+"\n"+`{"stdout":"stopping\n"}`+"\n"+`{"exit":0}` {
		t.Error(got)
	}
	if got := server.ask("--engine-status").all(); got != `{"retry":"this engine is ending"}` {
		t.Error(got)
	}
}
