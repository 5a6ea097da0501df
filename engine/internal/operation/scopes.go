package operation

import (
	"context"
	"sync"

	"github.com/pulumi/pulumi/pkg/v3/backend"
	"github.com/pulumi/pulumi/pkg/v3/engine"
	"github.com/pulumi/pulumi/pkg/v3/util/cancel"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag/colors"
)

// scopes opens a cancellation scope for each run of the engine within an operation. There are two runs if the operation
// begins with a preview. The CLI's scopes react to signals of the process, these to interrupts of the client.
type scopes struct {
	interrupts <-chan struct{}
	// opened is called before a run begins, and the function that it returns when the run has ended.
	opened func(preview bool) (closed func())
}

var _ backend.CancellationScopeSource = (*scopes)(nil)

func (s *scopes) NewScope(ctx context.Context, events chan<- engine.Event, preview bool) backend.CancellationScope {
	closed := s.opened(preview)
	canceled, source := cancel.NewContext(ctx)
	opened := &scope{
		context: canceled, source: source, closed: closed, closing: make(chan struct{}), done: make(chan struct{}),
	}
	go opened.listen(s.interrupts, events, preview)
	return opened
}

type scope struct {
	context *cancel.Context
	source  *cancel.Source
	closed  func()
	closing chan struct{}
	done    chan struct{}
	once    sync.Once
}

func (s *scope) Context() *cancel.Context { return s.context }

// Close ends the scope. The plugin host of the run is closed when the context of the scope ends. In the CLI, the end of
// the process does that.
func (s *scope) Close() {
	s.once.Do(func() {
		close(s.closing)
		<-s.done
		s.source.Terminate()
		s.closed()
	})
}

// listen reacts to interrupts as the CLI does to signals, with the same messages.
func (s *scope) listen(interrupts <-chan struct{}, events chan<- engine.Event, preview bool) {
	defer close(s.done)
	for {
		select {
		case <-s.closing:
			return
		case <-interrupts:
		}
		if s.context.CancelErr() == nil {
			message := "^C received; cancelling. If you would like to terminate immediately, press ^C again.\n"
			if !preview {
				message += colors.BrightRed + "Note that terminating immediately may lead to orphaned resources " +
					"and other inconsistencies.\n" + colors.Reset
			}
			s.show(events, message)
			s.source.Cancel()
		} else {
			s.show(events, colors.BrightRed+"^C received; terminating"+colors.Reset)
			s.source.Terminate()
		}
	}
}

// show displays a message, unless the display has ended.
func (s *scope) show(events chan<- engine.Event, message string) {
	event := engine.NewEvent(engine.StdoutEventPayload{Message: message, Color: colors.Always})
	select {
	case events <- event:
	case <-s.closing:
	}
}
