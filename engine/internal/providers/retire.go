package providers

import (
	"slices"
)

// retire prevents new leases of the process. It is closed when its last user has ended.
func (p *Pool) retire(old *process, why string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.retireLocked(old, why)
	p.closeIdle(old, false)
}

func (p *Pool) retireLocked(old *process, why string) {
	if old.retired == "" {
		old.retired = why
		p.options.Logger.Info("a provider is retired", "provider", old, "why", why, "operations", old.operations)
	}
}

// retireAndReplace retires a process that must not be used again, and starts an unconfigured one for the next
// operation. The mutex must be held.
func (p *Pool) retireAndReplace(old *process, why string) {
	if old.retired != "" {
		return
	}
	p.retireLocked(old, why)
	if !p.closed {
		p.spare(old)
	}
}

// closeIdle closes a retired process without users. The mutex must be held.
func (p *Pool) closeIdle(old *process, hung bool) {
	if old.retired == "" || len(old.users) > 0 || old.removed {
		return
	}
	p.removeLocked(old)
	go old.end(hung)
}

// end closes the process when it has started. A process that does not respond is killed first.
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

// drop removes a process that did not start.
func (p *Pool) drop(failed *process) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	failed.retired = "it did not start"
	if !failed.removed {
		p.removeLocked(failed)
	}
}

// ended removes a process that has ended. If it crashed, its users keep it until they end, to get its last messages.
func (p *Pool) ended(old *process) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if old.removed {
		return
	}
	old.crashed = true
	p.retireLocked(old, "it crashed")
	p.removeLocked(old)
}

// makeRoom retires the process that is idle for the longest time, if there are too many. The mutex must be held.
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
	p.retireLocked(oldest, "there are too many providers")
	p.closeIdle(oldest, false)
}

// replace starts an unconfigured process, and retires the old one when the new one has started, so that no operation
// waits for a start. The mutex must be held.
//
// The new process is not configured before it is needed, because the Kubernetes provider would cache that the cluster
// is unreachable at that moment.
func (p *Pool) replace(old *process, why string) {
	if old.replacing || old.retired != "" || p.closed {
		return
	}
	old.replacing = true
	spare := p.spare(old)
	p.booting.Go(func() {
		<-spare.started
		if spare.failure != nil {
			p.options.Logger.Warn("the replacement of a provider did not start", "provider", old, "error", spare.failure)
		}
		p.retire(old, why)
	})
}

// spare returns an unconfigured process with the same spec, and starts one if there is none. The mutex must be held.
func (p *Pool) spare(old *process) *process {
	for _, each := range p.processes[old.key] {
		if each.retired == "" && each.config == "" {
			return each
		}
	}
	return p.launch(old.spec, old.key, "", old.hosts)
}
