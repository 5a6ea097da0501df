package providers

import (
	"cmp"
	"slices"
)

// ProviderStatus describes one process.
type ProviderStatus struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	PID        int    `json:"pid"`
	RSS        int64  `json:"rss"` // bytes
	Operations int    `json:"operations"`
	Users      int    `json:"users"`
	Asked      int64  `json:"asked"`    // calls that it got
	Answered   int64  `json:"answered"` // calls that were answered without it, see [answers]
	State      string `json:"state"`    // starting, spare, ready or retiring
}

// Status describes all processes, in the order of their process ids.
func (p *Pool) Status() []ProviderStatus {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	found := []ProviderStatus{}
	for _, each := range p.all() {
		state := ProviderStatus{
			Name: each.spec.descriptor.Name, Operations: each.operations, Users: len(each.users), State: each.state(),
			Asked: each.asked, Answered: each.answers.answered.Load(),
		}
		if each.running != nil {
			state.PID, state.RSS = each.running.pid, p.memory(each.running.pid)
			if version := each.running.info.Version; version != nil {
				state.Version = version.String()
			}
		}
		found = append(found, state)
	}
	slices.SortFunc(found, func(a, b ProviderStatus) int { return cmp.Compare(a.PID, b.PID) })
	return found
}

// state returns the state for ProviderStatus. The mutex of the pool must be held.
func (p *process) state() string {
	switch {
	case p.retired != "":
		return "retiring"
	case p.running == nil:
		return "starting"
	case p.config == "":
		return "spare"
	}
	return "ready"
}
