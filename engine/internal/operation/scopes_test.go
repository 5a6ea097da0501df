package operation

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pulumi/pulumi/pkg/v3/backend"
	"github.com/pulumi/pulumi/pkg/v3/engine"
)

func openScope(preview bool) (opened backend.CancellationScope, interrupts chan struct{}, events chan engine.Event) {
	interrupts, events = make(chan struct{}, 2), make(chan engine.Event)
	source := &scopes{interrupts: interrupts, opened: func(bool) func() { return func() {} }}
	return source.NewScope(context.Background(), events, preview), interrupts, events
}

func text(t *testing.T, events <-chan engine.Event) string {
	t.Helper()
	select {
	case event := <-events:
		return event.Payload().(engine.StdoutEventPayload).Message
	case <-time.After(10 * time.Second):
		t.Fatal("nothing is said")
		return ""
	}
}

func TestTheFirstInterruptCancelsAndTheSecondTerminates(t *testing.T) {
	scope, interrupts, events := openScope(false)
	interrupts <- struct{}{}
	if said := text(t, events); !strings.Contains(said, "cancelling") || !strings.Contains(said, "orphaned") {
		t.Error(said)
	}
	<-scope.Context().Canceled()
	if scope.Context().TerminateErr() != nil {
		t.Error("terminated by the first")
	}
	interrupts <- struct{}{}
	if said := text(t, events); !strings.Contains(said, "terminating") {
		t.Error(said)
	}
	<-scope.Context().Terminated()
	scope.Close()
}

func TestACancelledPreviewDoesNotWarnOfOrphans(t *testing.T) {
	scope, interrupts, events := openScope(true)
	interrupts <- struct{}{}
	if said := text(t, events); strings.Contains(said, "orphaned") {
		t.Error(said)
	}
	scope.Close()
}

func TestAnInterruptBeforeTheScopeHasAnEffect(t *testing.T) {
	interrupts, events := make(chan struct{}, 2), make(chan engine.Event, 1)
	interrupts <- struct{}{}
	source := &scopes{interrupts: interrupts, opened: func(bool) func() { return func() {} }}
	scope := source.NewScope(context.Background(), events, false)
	<-scope.Context().Canceled()
	scope.Close()
}

func TestTheEndOfAScopeEndsItsContext(t *testing.T) {
	scope, interrupts, _ := openScope(false)
	interrupts <- struct{}{} // events are no longer displayed; the end must not wait for that
	scope.Close()
	scope.Close()
	if scope.Context().TerminateErr() == nil {
		t.Error("the plugin host would live on")
	}
}
