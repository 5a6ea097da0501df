package providers

import (
	"log/slog"
	"sync"
	"time"

	"github.com/pulumi/pulumi/pkg/v3/engine"

	"reside.dev/engine/internal/proc"
)

// Options are the settings of a pool. The zero value of a limit means its default.
type Options struct {
	// Folder is the folder from which plugins are started. Several engines may share it.
	Folder string
	// Guard is the path of the program reside-plugin-guard.
	Guard string
	// MaxRSS is the resident memory, in bytes, above which a process is replaced when an operation ends.
	MaxRSS int64
	// MaxOperations is the number of operations after which a process is replaced.
	MaxOperations int
	// MaxProcesses limits the number of kept processes. The one that is idle for the longest time is retired.
	MaxProcesses int
	// MaxAge limits the age of processes of providers whose dependencies are not completely known.
	MaxAge time.Duration
	// Environment is added to the environment of providers. Variables that the engine's environment sets are not
	// replaced.
	Environment map[string]string
	// Logger gets messages that belong to no operation.
	Logger *slog.Logger
}

// Defaults; see docs/resident-engine.md for the measurements.
const (
	defaultMaxRSS        = 180 << 20
	defaultMaxOperations = 1000
	defaultMaxProcesses  = 3
	defaultMaxAge        = 15 * time.Minute
)

func (o Options) withDefaults() Options {
	if o.MaxRSS == 0 {
		o.MaxRSS = defaultMaxRSS
	}
	if o.MaxOperations == 0 {
		o.MaxOperations = defaultMaxOperations
	}
	if o.MaxProcesses == 0 {
		o.MaxProcesses = defaultMaxProcesses
	}
	if o.MaxAge == 0 {
		o.MaxAge = defaultMaxAge
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// hostMaker creates a plugin host, as the engine of an operation does.
type hostMaker = engine.HostFactory

// Pool keeps the processes. It is safe for concurrent use.
type Pool struct {
	options Options
	start   starter
	memory  func(pid int) int64
	now     func() time.Time

	booting sync.WaitGroup

	mutex     sync.Mutex
	processes map[bootKey][]*process // in the order of their start; includes retired ones that are not closed
	leases    int                    // that were begun
	closed    bool
}

// NewPool returns an empty pool.
func NewPool(options Options) *Pool {
	options = options.withDefaults()
	boot := booter{options.Folder, options.Guard, options.Environment}
	if err := boot.sweep(); err != nil {
		options.Logger.Warn("cannot remove the folders of dead engines", "error", err)
	}
	return newPool(options, boot.start, proc.Resident, time.Now)
}

func newPool(options Options, start starter, memory func(int) int64, now func() time.Time) *Pool {
	return &Pool{
		options: options.withDefaults(), start: start, memory: memory, now: now,
		processes: map[bootKey][]*process{},
	}
}

// Begin opens the lease of one operation on a stack. Project and stack are those of the resources' URNs. The caller
// must call End.
func (p *Pool) Begin(project, stack string) *Lease {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.leases++
	return &Lease{pool: p, project: project, stack: stack, ended: make(chan struct{}), used: map[*process]struct{}{}}
}

// Operations returns how many operations were begun.
func (p *Pool) Operations() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.leases
}

// joinAny joins a process with this spec and any configuration, or starts one.
func (p *Pool) joinAny(lease *Lease, required spec, hosts hostMaker) (*process, error) {
	key, err := required.key()
	if err != nil {
		return nil, err
	}
	p.mutex.Lock()
	var found *process
	for _, candidate := range p.processes[key] {
		if candidate.retired == "" {
			found = candidate
		}
	}
	if found == nil && !p.closed {
		found = p.launch(required, key, "", hosts)
	}
	err = p.join(lease, found)
	p.mutex.Unlock()
	if err != nil {
		return nil, err
	}
	return found, found.awaitStart(lease.ended)
}

// joinConfigured joins the process with this configuration. If there is none, it takes an unconfigured one or starts
// one. Then ours is true, and the caller must configure the process.
func (p *Pool) joinConfigured(lease *Lease, required spec, config configKey, hosts hostMaker) (found *process, ours bool, err error) {
	key, err := required.key()
	if err != nil {
		return nil, false, err
	}
	p.mutex.Lock()
	var spare *process
	for _, candidate := range p.processes[key] {
		switch {
		case candidate.retired != "":
		case candidate.config == config:
			found = candidate
		case candidate.config == "":
			spare = candidate
		}
	}
	if found == nil {
		if ours, found = true, spare; found != nil {
			found.config = config
		} else if !p.closed {
			found = p.launch(required, key, config, hosts)
		}
	}
	err = p.join(lease, found)
	p.mutex.Unlock()
	if err != nil {
		return nil, false, err
	}
	return found, ours, found.awaitStart(lease.ended)
}

// launch starts a process. The mutex must be held.
func (p *Pool) launch(required spec, key bootKey, config configKey, hosts hostMaker) *process {
	p.makeRoom()
	made := &process{
		pool: p, spec: required, key: key, hosts: hosts, config: config, idleSince: p.now(), users: map[*Lease]*use{},
		started: make(chan struct{}), configured: make(chan struct{}),
	}
	p.processes[key] = append(p.processes[key], made)
	p.booting.Go(func() { made.boot(p.start) })
	return made
}

// join makes the lease a user of the process. The mutex must be held.
func (p *Pool) join(lease *Lease, joined *process) error {
	if p.closed || lease.over {
		return errEnded
	}
	if _, ok := joined.users[lease]; !ok {
		joined.users[lease] = &use{}
		joined.operations++
		lease.used[joined] = struct{}{}
	}
	return nil
}

// all returns the processes of the pool. The mutex must be held.
func (p *Pool) all() []*process {
	var all []*process
	for _, some := range p.processes {
		all = append(all, some...)
	}
	return all
}

// Close ends all processes and waits until they have ended. Operations that still use one fail.
func (p *Pool) Close() {
	p.mutex.Lock()
	p.closed = true
	for _, each := range p.all() {
		p.retireLocked(each, "the engine ends")
		if !each.removed {
			p.removeLocked(each)
			go each.end(false)
		}
	}
	p.mutex.Unlock()
	p.booting.Wait()
}
