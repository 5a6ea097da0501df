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

// Outcome is the result of an operation.
type Outcome int

// The results that an operation can have.
const (
	Succeeded Outcome = iota
	Failed
	Cancelled
)

var (
	errEnded     = errors.New("the operation has ended")
	errCancelled = errors.New("the operation was cancelled")
)

// Lease is the use of a pool by one operation.
type Lease struct {
	pool           *Pool
	project, stack string
	ended          chan struct{} // closed by End

	hostsMutex sync.Mutex
	hosts      []*host // those that the engine has not closed

	// Guarded by the pool's mutex:

	used      map[*process]struct{}
	cancelled bool
	over      bool
}

// HostFactory wraps the factory of an operation's plugin host; its hosts take providers from the pool.
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

// End releases all processes and abandons pending calls.
//
// A process that returned an error whose cause it may cache (see [mayCache]) is retired, whatever the outcome. If the
// operation failed for another reason, such as an error of the program or a policy, its processes are kept. After a
// cancelled operation, all its processes are retired.
func (l *Lease) End(outcome Outcome) {
	l.hostsMutex.Lock()
	hosts := l.hosts
	l.hosts = nil
	l.hostsMutex.Unlock()
	for _, each := range hosts {
		each.abandonCalls()
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

// release ends the use of a process by a lease. The mutex must be held.
func (p *Pool) release(lease *Lease, left *process, outcome Outcome) {
	how := left.users[lease]
	delete(left.users, lease)
	left.idleSince = p.now()
	hung := how.calls > 0 && outcome == Cancelled
	left.hung = left.hung || hung
	switch {
	case hung:
		p.retireAndReplace(left, "a call got no response")
	case outcome == Cancelled:
		p.retireAndReplace(left, "an operation that used it was cancelled")
	case how.trouble != "":
		p.retireAndReplace(left, how.trouble)
	}
	p.replaceIfDue(left)
	p.signalAbandoned(left)
	p.closeIdle(left, left.hung)
}

// replaceIfDue replaces a process that has reached a limit. The mutex must be held.
func (p *Pool) replaceIfDue(old *process) {
	if old.retired != "" || old.running == nil {
		return
	}
	rss := p.memory(old.running.pid)
	switch {
	case rss > p.options.MaxRSS:
		p.replace(old, fmt.Sprintf("it uses %d MiB", rss>>20))
	case old.operations >= p.options.MaxOperations:
		p.replace(old, fmt.Sprintf("it has served %d operations", old.operations))
	case !folderFree(old.spec.descriptor.Name) && p.now().Sub(old.startedAt) > p.options.MaxAge:
		p.retireLocked(old, "it may have missed a change of its environment")
	}
}

// cancel sends Cancel to the processes that only cancelled operations use. A process that other operations use
// continues, but accepts no call of this operation and no new lease. It gets Cancel when the others have ended.
func (l *Lease) cancel() error {
	p := l.pool
	p.mutex.Lock()
	l.cancelled = true
	var cancelled []*process
	for each := range l.used {
		p.retireAndReplace(each, "an operation that used it was cancelled")
		if each.cancellable() {
			each.signalled = true
			cancelled = append(cancelled, each)
		}
	}
	p.mutex.Unlock()

	failures := make([]error, len(cancelled))
	var all sync.WaitGroup
	for i, each := range cancelled {
		all.Go(func() { failures[i] = each.signal() })
	}
	all.Wait()
	return errors.Join(failures...)
}

// signalAbandoned sends Cancel to a process that only cancelled operations still use. The mutex must be held.
func (p *Pool) signalAbandoned(left *process) {
	if len(left.users) == 0 || !left.cancellable() {
		return
	}
	left.signalled = true
	go func() {
		if err := left.signal(); err != nil {
			p.options.Logger.Warn("cannot interrupt a provider", "provider", left, "error", err)
		}
	}()
}

// cancellable reports whether the process runs, has not received Cancel, and is used only by cancelled operations.
func (p *process) cancellable() bool {
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

// concerns reports whether a resource belongs to the stack of the operation.
func (l *Lease) concerns(about resource.URN) bool {
	return string(about.Project()) == l.project && string(about.Stack()) == l.stack
}

// log forwards a message of a provider to the operation.
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
