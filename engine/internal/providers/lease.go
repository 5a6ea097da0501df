package providers

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/pulumi/pulumi/pkg/v3/engine"
	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// Outcome is how an operation ended.
type Outcome int

// The outcomes.
const (
	Succeeded Outcome = iota
	Failed
	Cancelled
)

var (
	errEnded     = errors.New("the operation has ended")
	errCancelled = errors.New("the operation was cancelled")
)

// Lease is what one operation holds of a pool.
type Lease struct {
	pool           *Pool
	project, stack string
	ended          chan struct{} // closed by End

	hostsMutex sync.Mutex
	hosts      []*host // that the engine has not closed yet

	// Guarded by the pool's mutex:

	used      map[*process]struct{}
	cancelled bool
	over      bool
}

// HostFactory wraps the factory of an operation's plugin host so that its providers come from the pool.
func (l *Lease) HostFactory(base engine.HostFactory) engine.HostFactory {
	return func(ctx context.Context, d, statusD diag.Sink, debug plugin.DebugContext) (plugin.Host, error) {
		inner, err := base(ctx, d, statusD, debug)
		if err != nil {
			return nil, err
		}
		made := &host{Host: inner, lease: l, base: base, messages: d, status: statusD, closed: make(chan struct{})}
		l.hostsMutex.Lock()
		defer l.hostsMutex.Unlock()
		l.hosts = append(l.hosts, made)
		return made, nil
	}
}

// End gives back all processes. Calls that are still in flight are given up.
//
// A process that has answered with an error that it may remember (see [remembers]) is retired whatever the outcome. A
// program's own error or a policy's refusal is nothing that a provider knows about, so that those alone cost no process.
// After a cancelled operation all are retired.
func (l *Lease) End(outcome Outcome) {
	l.hostsMutex.Lock()
	hosts := l.hosts
	l.hosts = nil
	l.hostsMutex.Unlock()
	for _, each := range hosts {
		each.giveUp()
	}

	p := l.pool
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if l.over {
		return
	}
	l.over = true
	close(l.ended)
	for each := range l.used {
		p.release(l, each, outcome)
	}
}

// release ends a lease's use of a process. The mutex must be held.
func (p *Pool) release(lease *Lease, left *process, outcome Outcome) {
	how := left.users[lease]
	delete(left.users, lease)
	left.idleSince = p.now()
	hung := how.calls > 0 && outcome == Cancelled
	left.hung = left.hung || hung
	switch {
	case hung:
		p.distrust(left, "it gave no answer")
	case outcome == Cancelled:
		p.distrust(left, "an operation that used it was cancelled")
	case how.trouble != "":
		p.distrust(left, how.trouble)
	}
	p.grown(left)
	p.signalAbandoned(left)
	p.closeIdle(left, left.hung)
}

// grown replaces a process that is due. The mutex must be held.
func (p *Pool) grown(grown *process) {
	if grown.retired != "" || grown.running == nil {
		return
	}
	rss := p.memory(grown.running.pid)
	switch {
	case rss > p.options.MaxRSS:
		p.replace(grown, fmt.Sprintf("it has grown to %d MiB", rss>>20))
	case grown.operations >= p.options.MaxOperations:
		p.replace(grown, fmt.Sprintf("it has served %d operations", grown.operations))
	case !folderFree(grown.spec.descriptor.Name) && p.now().Sub(grown.startedAt) > p.options.MaxAge:
		p.retireLocked(grown, "it may have missed a change of its surroundings")
	}
}

// cancel passes the interruption of an operation on. A process that only interrupted operations use is told; one that
// others use goes on, but takes no new call of this operation and no new lease, and is told once the others are done.
func (l *Lease) cancel() error {
	p := l.pool
	p.mutex.Lock()
	l.cancelled = true
	var tell []*process
	for each := range l.used {
		p.distrust(each, "an operation that used it was cancelled")
		if each.tellable() {
			each.signalled = true
			tell = append(tell, each)
		}
	}
	p.mutex.Unlock()

	failures := make([]error, len(tell))
	var all sync.WaitGroup
	for i, each := range tell {
		all.Go(func() { failures[i] = each.signal() })
	}
	all.Wait()
	return errors.Join(failures...)
}

// signalAbandoned tells a process that only cancelled operations are left with. The mutex must be held.
func (p *Pool) signalAbandoned(left *process) {
	if len(left.users) == 0 || !left.tellable() {
		return
	}
	left.signalled = true
	go func() {
		if err := left.signal(); err != nil {
			p.options.Logger.Warn("interrupting a provider", "provider", left, "error", err)
		}
	}()
}

// tellable tells whether the process has started, was not told yet, and only cancelled operations use it.
func (p *process) tellable() bool {
	if p.signalled || p.crashed || p.running == nil {
		return false
	}
	for user := range p.users {
		if !user.cancelled {
			return false
		}
	}
	return true
}

// concerns tells whether a resource is one of the operation's stack.
func (l *Lease) concerns(about resource.URN) bool {
	return string(about.Project()) == l.project && string(about.Stack()) == l.stack
}

// log hands a provider's message to the operation.
func (l *Lease) log(status bool, severity diag.Severity, message *diag.Diag, args ...any) {
	l.hostsMutex.Lock()
	hosts := append([]*host(nil), l.hosts...)
	l.hostsMutex.Unlock()
	for _, each := range hosts {
		sink := each.messages
		if status {
			sink = each.status
		}
		sink.Logf(severity, message, args...)
	}
}
