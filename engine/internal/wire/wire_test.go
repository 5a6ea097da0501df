package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
)

func TestRequestAndSignals(t *testing.T) {
	reader := NewReader(strings.NewReader(
		`{"version":1,"args":["up","--yes"],"cwd":"/here","stdin":"text"}` + "\n" + `{"signal":"interrupt"}` + "\n"))
	request, err := reader.Request()
	if err != nil || request.Version != 1 || len(request.Args) != 2 || request.Cwd != "/here" || request.Stdin != "text" {
		t.Fatalf("%+v, %v", request, err)
	}
	if _, err := reader.Signal(); err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Signal(); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
}

func TestALongRequestIsRead(t *testing.T) {
	text := strings.Repeat("x", 3*maxSignal)
	line, _ := json.Marshal(Request{Version: 1, Stdin: text})
	request, err := NewReader(bytes.NewReader(append(line, '\n'))).Request()
	if err != nil || request.Stdin != text {
		t.Fatal(err)
	}
}

func TestAnInvalidRequestIsRefused(t *testing.T) {
	if _, err := NewReader(strings.NewReader("GET / HTTP/1.1\n")).Request(); !errors.Is(err, ErrBadRequest) {
		t.Error(err)
	}
	if _, err := NewReader(strings.NewReader(`{"version":1`)).Request(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	for _, line := range []string{`{"signal":"kill"}` + "\n", strings.Repeat("x", maxSignal+1) + "\n"} {
		if _, err := NewReader(strings.NewReader(line)).Signal(); !errors.Is(err, ErrBadRequest) {
			t.Error(err)
		}
	}
}

func TestRepliesBeginWithBegun(t *testing.T) {
	var sent bytes.Buffer
	writer := NewWriter(&sent)
	io.WriteString(writer.Stdout(), "out")
	io.WriteString(writer.Stderr(), "")
	io.WriteString(writer.Stderr(), "err\n")
	if err := errors.Join(writer.Begin(), writer.Send(Exit(0))); err != nil {
		t.Fatal(err)
	}
	want := `{"begun":true}` + "\n" + `{"stdout":"out"}` + "\n" + `{"stderr":"err\n"}` + "\n" + `{"exit":0}` + "\n"
	if sent.String() != want {
		t.Errorf("%s", sent.String())
	}
}

func TestACommandThatIsNotBegunHasOneReply(t *testing.T) {
	for want, reply := range map[string]Reply{
		`{"unserved":"why"}` + "\n": {Unserved: "why"}, `{"retry":"why"}` + "\n": {Retry: "why"},
	} {
		var sent bytes.Buffer
		if err := NewWriter(&sent).Send(reply); err != nil || sent.String() != want {
			t.Errorf("%s, %v", sent.String(), err)
		}
	}
}

// broken is a client that has disconnected.
type broken struct{ writes int }

func (b *broken) Write([]byte) (int, error) {
	b.writes++
	return 0, io.ErrClosedPipe
}

func TestNothingIsSentToADisconnectedClient(t *testing.T) {
	client := &broken{}
	writer := NewWriter(client)
	for range 3 {
		if count, err := writer.Stdout().Write([]byte("text")); count != 4 || err != nil {
			t.Errorf("an operation failed for its client: %v", err)
		}
	}
	if err := writer.Send(Exit(0)); !errors.Is(err, io.ErrClosedPipe) || client.writes != 1 {
		t.Errorf("%v after %d writes", err, client.writes)
	}
}

func TestConcurrentWrites(t *testing.T) {
	var sent bytes.Buffer
	writer := NewWriter(&sent)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { io.WriteString(writer.Stdout(), "text") })
	}
	all.Wait()
	lines := strings.Split(strings.TrimSpace(sent.String()), "\n")
	if len(lines) != 21 {
		t.Fatal(len(lines))
	}
	for _, line := range lines {
		var reply Reply
		if err := json.Unmarshal([]byte(line), &reply); err != nil {
			t.Error(err)
		}
	}
}

func TestALongTextIsSentInPieces(t *testing.T) {
	var sent bytes.Buffer
	text := strings.Repeat("añ€😀", maxPiece/4)
	io.WriteString(NewWriter(&sent).Stdout(), text)
	var whole strings.Builder
	for _, line := range strings.Split(strings.TrimSpace(sent.String()), "\n") {
		var reply Reply
		if err := json.Unmarshal([]byte(line), &reply); err != nil || len(reply.Stdout) > maxPiece {
			t.Error(len(reply.Stdout), err)
		}
		whole.WriteString(reply.Stdout)
	}
	if whole.String() != text {
		t.Error("the pieces are not the text")
	}
}

func TestInvalidUTF8IsSent(t *testing.T) {
	var sent bytes.Buffer
	bytes := bytes.Repeat([]byte{0x80}, maxPiece+10)
	if count, err := NewWriter(&sent).Stdout().Write(bytes); count != len(bytes) || err != nil {
		t.Error(count, err)
	}
}
