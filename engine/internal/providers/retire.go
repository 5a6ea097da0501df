package providers

import (
	"slices"
)

// retire gives the process no new leases; it is closed when its last user is done.
func (p *Pool) retire(old *process, why string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.retireLocked(old, why)
	p.closeIdle(old, false)
}

func (p *Pool) retireLocked(old *process, why string) {
	if old.retired == "" {
		old.retired = why
		p.options.Logger.Info("a provider gets no new operations", "provider", old, "why", why, "operations", old.operations)
	}
}

// distrust retires a process that works but must not be used again, and starts a spare one for the next operation, which
// is likely to come soon. The mutex must be held.
func (p *Pool) distrust(old *process, why string) {
	if old.retired != "" {
		return
	}
	p.retireLocked(old, why)
	if !p.closed {
		p.spare(old)
	}
}

// closeIdle closes a retired process that nobody uses. The mutex must be held.
func (p *Pool) closeIdle(old *process, hung bool) {
	if old.retired == "" || len(old.users) > 0 || old.removed {
		return
	}
	p.removeLocked(old)
	go old.end(hung)
}

// end closes the process once it has started; one that doesn't answer is killed first.
func (p *process) end(hung bool) {
	<-p.started
	if p.failure != nil {
		return
	}
	if hung {
		p.running.kill()
	}
	p.close()
}

func (p *Pool) removeLocked(old *process) {
	old.removed = true
	rest := slices.DeleteFunc(p.processes[old.key], func(other *process) bool { return other == old })
	if len(rest) == 0 {
		delete(p.processes, old.key)
	} else {
		p.processes[old.key] = rest
	}
}

// drop forgets a process that did not start.
func (p *Pool) drop(failed *process) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	failed.retired = "it did not start"
	if !failed.removed {
		p.removeLocked(failed)
	}
}

// ended notes that a process is gone. If nobody ended it, its users keep it until they are done, for its last words.
func (p *Pool) ended(gone *process) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if gone.removed {
		return
	}
	gone.crashed = true
	p.retireLocked(gone, "it ended by itself")
	p.removeLocked(gone)
}

// makeRoom retires the longest idle process when there are too many. The mutex must be held.
func (p *Pool) makeRoom() {
	var live, idle []*process
	for _, each := range p.all() {
		if each.retired == "" {
			live = append(live, each)
			if len(each.users) == 0 {
				idle = append(idle, each)
			}
		}
	}
	if len(live) < p.options.MaxProcesses || len(idle) == 0 {
		return
	}
	oldest := slices.MinFunc(idle, func(a, b *process) int { return a.idleSince.Compare(b.idleSince) })
	p.retireLocked(oldest, "another one needs its place")
	p.closeIdle(oldest, false)
}

// replace starts a spare process and retires the old one when that is up, so that no operation waits for a start. The
// mutex must be held.
//
// The spare one is not configured yet: a configuration before it is needed might find the cluster unreachable, which
// the Kubernetes provider remembers.
func (p *Pool) replace(old *process, why string) {
	if old.replacing || old.retired != "" || p.closed {
		return
	}
	old.replacing = true
	spare := p.spare(old)
	p.booting.Go(func() {
		<-spare.started
		if spare.failure != nil {
			p.options.Logger.Warn("a provider's replacement did not start", "provider", old, "error", spare.failure)
		}
		p.retire(old, why)
	})
}

// spare is an unconfigured process of the same kind, started if there is none. The mutex must be held.
func (p *Pool) spare(old *process) *process {
	for _, each := range p.processes[old.key] {
		if each.retired == "" && each.config == "" {
			return each
		}
	}
	return p.launch(old.spec, old.key, "", old.hosts)
}
