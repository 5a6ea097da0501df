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
	exited <-chan struct{} // closed when the process has ended
	close  func() error    // releases all resources of the plugin, and ends the process if it runs
	kill   func()          // kills the process
}

// starter starts a plugin. Tests replace it.
type starter func(required spec, hosts hostMaker, messages, status diag.Sink) (*running, error)

// process is one process of a provider. It exists before the process starts and after it has ended.
//
// The pool's mutex guards the fields below "guarded by pool.mutex".
type process struct {
	pool *Pool
	spec spec
	key  bootKey

	started chan struct{} // closed when running or failure is set
	running *running
	failure error

	configured       chan struct{} // closed when Configure has returned
	configureFailure error

	answers answers   // what it answered before
	hosts   hostMaker // creates its plugin host
	closing sync.Once

	// guarded by pool.mutex:

	config     configKey // its configuration, also while it is being configured; empty for an unconfigured one
	users      map[*Lease]*use
	operations int       // number of operations that have used it
	asked      int64     // number of calls that it got
	idleSince  time.Time // when its last user left; invalid while it has users
	retired    string    // why it gets no new leases; empty if it is not retired
	startedAt  time.Time
	hung       bool // a call was abandoned, so the process must be killed
	replacing  bool // its replacement is being started
	crashed    bool
	signalled  bool // it received Cancel, which is permanent
	removed    bool // it was removed from the pool
}

// use is the use of one process by one lease.
type use struct {
	calls   int    // pending calls
	trouble string // why the process must be retired after this operation
}

// boot starts the process and waits until it ends. It runs in a goroutine of its own.
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
	p.close() // forwards the last messages of the process to its users
}

// awaitStart waits until the process accepts calls.
func (p *process) awaitStart(given <-chan struct{}) error {
	select {
	case <-p.started:
		return p.failure
	case <-given:
		return errEnded
	}
}

// configure configures the process.
func (p *process) configure(ctx context.Context, request plugin.ConfigureRequest) error {
	_, p.configureFailure = p.running.Configure(ctx, request)
	close(p.configured)
	if p.configureFailure != nil {
		p.pool.retire(p, "its configuration failed")
	}
	return p.configureFailure
}

// awaitConfigured waits until the Configure call of another operation has returned.
func (p *process) awaitConfigured(given <-chan struct{}) error {
	select {
	case <-p.configured:
		return p.configureFailure
	case <-given:
		return errEnded
	}
}

// signal sends Cancel. The process ends pending calls early, and must not be used afterwards.
func (p *process) signal() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := p.running.SignalCancellation(ctx); err != nil {
		return fmt.Errorf("cancelling the provider %s: %w", p.spec.descriptor.Name, err)
	}
	return nil
}

// close ends the process as the stock engine does, within ten seconds.
func (p *process) close() {
	p.closing.Do(func() {
		if err := p.running.close(); err != nil {
			p.pool.options.Logger.Warn("cannot close a provider", "provider", p.String(), "error", err)
		}
	})
}

// listeners returns the leases that get a message of the process.
func (p *process) listeners(about resource.URN) []*Lease {
	p.pool.mutex.Lock()
	defer p.pool.mutex.Unlock()
	var found []*Lease
	for lease := range p.users {
		if about == "" || lease.concerns(about) {
			found = append(found, lease)
		}
	}
	return found
}

// String returns the name of the process for messages.
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

// LogValue returns the name of the process for the log.
func (p *process) LogValue() slog.Value { return slog.StringValue(p.String()) }
