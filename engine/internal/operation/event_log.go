package operation

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/pulumi/pulumi/pkg/v3/engine"
	"github.com/pulumi/pulumi/pkg/v3/resource/deploy"
	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag/colors"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// eventsInReply is the path of an event log whose events are the standard output of the command.
const eventsInReply = "reply:"

// eventLog writes the events of a declared program as they happen, in the form of Pulumi's event log. It leaves out
// what its reader does not need, above all inputs and outputs.
type eventLog struct {
	color colors.Colorization

	mutex   sync.Mutex
	writer  io.Writer // nil: nobody reads
	file    *os.File  // to close; nil if there is none
	failure error
}

// newEventLog opens the event log that a command asks for.
func (c *call) newEventLog() (*eventLog, error) {
	switch path := c.command.String("event-log"); path {
	case "":
		return &eventLog{color: c.color}, nil
	case eventsInReply:
		return &eventLog{color: c.color, writer: c.stdout}, nil
	default:
		file, err := os.OpenFile(c.folder.resolve(path), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return nil, err
		}
		return &eventLog{color: c.color, writer: file, file: file}, nil
	}
}

// close returns the first error of all writes. Nothing is written after it.
func (l *eventLog) close() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.writer = nil
	if l.file != nil {
		if err := l.file.Close(); l.failure == nil {
			l.failure = err
		}
		l.file = nil
	}
	return l.failure
}

// The members of an event that are written.
type (
	loggedEvent struct {
		Begun      *loggedStep       `json:"resourcePreEvent,omitempty"`
		Done       *loggedStep       `json:"resOutputsEvent,omitempty"`
		Failed     *loggedStep       `json:"resOpFailedEvent,omitempty"`
		Diagnostic *loggedDiagnostic `json:"diagnosticEvent,omitempty"`
	}
	loggedStep struct {
		Metadata loggedMetadata `json:"metadata"`
	}
	loggedMetadata struct {
		Op           apitype.OpType             `json:"op"`
		URN          resource.URN               `json:"urn"`
		Old          *loggedState               `json:"old,omitempty"`
		New          *loggedState               `json:"new,omitempty"`
		Diffs        []resource.PropertyKey     `json:"diffs,omitempty"`
		DetailedDiff map[string]json.RawMessage `json:"detailedDiff,omitempty"`
	}
	loggedState struct {
		RetainOnDelete bool           `json:"retainOnDelete,omitempty"`
		Outputs        map[string]any `json:"outputs,omitempty"`
	}
	loggedDiagnostic struct {
		URN      resource.URN  `json:"urn,omitempty"`
		Message  string        `json:"message"`
		Severity diag.Severity `json:"severity"`
	}
)

func (l *eventLog) begun(step deploy.Step)  { l.write(loggedEvent{Begun: logged(step)}) }
func (l *eventLog) failed(step deploy.Step) { l.write(loggedEvent{Failed: logged(step)}) }

// done writes the resource version of what a step has written, too.
func (l *eventLog) done(step deploy.Step) {
	found := logged(step)
	if version, there := versionOf(step); there {
		found.Metadata.New = &loggedState{Outputs: map[string]any{"metadata": map[string]any{"resourceVersion": version}}}
	}
	l.write(loggedEvent{Done: found})
}

func (l *eventLog) write(event loggedEvent) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.writer == nil || l.failure != nil {
		return
	}
	line, err := json.Marshal(event)
	if err == nil {
		_, err = l.writer.Write(append(line, '\n'))
	}
	l.failure = err
}

// logged returns what is written about a step.
func logged(step deploy.Step) *loggedStep {
	found := loggedMetadata{Op: apitype.OpType(step.Op()), URN: step.URN()}
	if old := step.Old(); old != nil && old.RetainOnDelete {
		found.Old = &loggedState{RetainOnDelete: true}
	}
	if differs, has := step.(interface{ Diffs() []resource.PropertyKey }); has {
		found.Diffs = differs.Diffs()
	}
	if differs, has := step.(interface {
		DetailedDiff() map[string]plugin.PropertyDiff
	}); has {
		for path := range differs.DetailedDiff() {
			if found.DetailedDiff == nil {
				found.DetailedDiff = map[string]json.RawMessage{}
			}
			found.DetailedDiff[path] = json.RawMessage("{}")
		}
	}
	return &loggedStep{found}
}

// versionOf returns the resource version of the Kubernetes object that a step has written.
func versionOf(step deploy.Step) (version string, there bool) {
	state := step.New()
	if state == nil {
		return "", false
	}
	state.Lock.Lock()
	defer state.Lock.Unlock()
	metadata := state.Outputs["metadata"]
	for metadata.IsSecret() {
		metadata = metadata.SecretValue().Element
	}
	if !metadata.IsObject() {
		return "", false
	}
	found := metadata.ObjectValue()["resourceVersion"]
	if !found.IsString() {
		return "", false
	}
	return found.StringValue(), true
}

// messages returns the sink for messages of the engine and of providers.
func (l *eventLog) messages() diag.Sink { return logSink{l} }

// status returns the sink for messages about progress, which nobody reads.
func (l *eventLog) status() diag.Sink {
	return diag.DefaultSink(io.Discard, io.Discard, diag.FormatOptions{Color: colors.Never})
}

type logSink struct{ log *eventLog }

func (s logSink) Logf(severity diag.Severity, message *diag.Diag, arguments ...any) {
	if severity == diag.Debug {
		return
	}
	_, text := engine.StringifyDiag(severity, message, arguments...)
	s.log.write(loggedEvent{Diagnostic: &loggedDiagnostic{message.URN, s.log.color.Colorize(text), severity}})
}

func (s logSink) Debugf(message *diag.Diag, arguments ...any) {
	s.Logf(diag.Debug, message, arguments...)
}
func (s logSink) Infof(message *diag.Diag, arguments ...any) {
	s.Logf(diag.Info, message, arguments...)
}
func (s logSink) Infoerrf(message *diag.Diag, arguments ...any) {
	s.Logf(diag.Infoerr, message, arguments...)
}
func (s logSink) Warningf(message *diag.Diag, arguments ...any) {
	s.Logf(diag.Warning, message, arguments...)
}
func (s logSink) Errorf(message *diag.Diag, arguments ...any) {
	s.Logf(diag.Error, message, arguments...)
}

// usualEventLog reports whether the engine's own event log must be used: it can send events to a server, too.
func usualEventLog(path string) bool { return strings.HasPrefix(path, "tcp://") }
