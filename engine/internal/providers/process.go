package providers

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/pulumi/pulumi/pkg/v3/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// running is a started plugin.
type running struct {
	plugin.Provider
	info   plugin.PluginInfo
	pid    int
	exited <-chan struct{} // closed when the process has ended, however that came
	close  func() error    // releases all that belongs to the plugin; ends the process if it lives
	kill   func()          // ends the process at once
}

// starter starts a plugin; tests have their own.
type starter func(wanted spec, hosts hostMaker, messages, status diag.Sink) (*running, error)

// process is one process of a provider, from before its start to after its end.
//
// Fields below "guarded" are guarded by the pool's mutex.
type process struct {
	pool *Pool
	spec spec
	key  bootKey

	started chan struct{} // closed when running or failure is set
	running *running
	failure error

	configured       chan struct{} // closed when its Configure has returned
	configureFailure error

	hosts   hostMaker // what made its plugin host
	closing sync.Once

	// guarded:

	config     configKey // what it is, or is being, configured with; empty for a spare one
	users      map[*Lease]*use
	operations int       // that have used it
	idleSince  time.Time // when its last user went; meaningless while it has users
	retired    string    // why it gets no new leases; empty while it gets them
	startedAt  time.Time
	hung       bool // a call was given up, so that it must be killed
	replacing  bool // a spare one is being started to take its place
	crashed    bool
	signalled  bool // it was asked to cancel, which is for ever
	removed    bool // it is not in the pool any more
}

// use is what one lease has to do with one process.
type use struct {
	calls   int    // in flight
	trouble string // why the process must not be trusted after this operation
}

// boot starts the process and watches its end. It runs in a goroutine of its own.
func (p *process) boot(start starter) {
	started, failure := start(p.spec, p.hosts, routing{p, false}, routing{p, true})
	p.pool.mutex.Lock()
	p.running, p.failure, p.startedAt = started, failure, p.pool.now()
	p.pool.mutex.Unlock()
	close(p.started)
	if p.failure != nil {
		p.pool.drop(p)
		return
	}
	<-p.running.exited
	p.pool.ended(p)
	p.close() // reports to those who use it what the process said before its end
}

// awaitStart waits until the process can be called.
func (p *process) awaitStart(given <-chan struct{}) error {
	select {
	case <-p.started:
		return p.failure
	case <-given:
		return errEnded
	}
}

// configure gives the process the configuration that it was claimed for.
func (p *process) configure(ctx context.Context, request plugin.ConfigureRequest) error {
	_, p.configureFailure = p.running.Configure(ctx, request)
	close(p.configured)
	if p.configureFailure != nil {
		p.pool.retire(p, "its configuration failed")
	}
	return p.configureFailure
}

// awaitConfigured waits until somebody else's Configure has returned.
func (p *process) awaitConfigured(given <-chan struct{}) error {
	select {
	case <-p.configured:
		return p.configureFailure
	case <-given:
		return errEnded
	}
}

// signal passes a user's interruption on; the process answers calls in flight early, and is of no use afterwards.
func (p *process) signal() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := p.running.SignalCancellation(ctx); err != nil {
		return fmt.Errorf("cancelling the provider %s: %w", p.spec.descriptor.Name, err)
	}
	return nil
}

// close ends the process as the stock engine does, which takes up to ten seconds.
func (p *process) close() {
	p.closing.Do(func() {
		if err := p.running.close(); err != nil {
			p.pool.options.Logger.Warn("closing a provider", "provider", p.String(), "error", err)
		}
	})
}

// listeners are the leases that a message of the process is meant for.
func (p *process) listeners(about resource.URN) []*Lease {
	p.pool.mutex.Lock()
	defer p.pool.mutex.Unlock()
	var meant []*Lease
	for lease := range p.users {
		if about == "" || lease.concerns(about) {
			meant = append(meant, lease)
		}
	}
	return meant
}

// String names the process in messages.
func (p *process) String() string {
	select {
	case <-p.started:
		if p.failure == nil {
			return fmt.Sprintf("%s (process %d)", p.spec.descriptor.Name, p.running.pid)
		}
	default:
	}
	return p.spec.descriptor.Name
}

// LogValue is what the engine's log says of a process.
func (p *process) LogValue() slog.Value { return slog.StringValue(p.String()) }
