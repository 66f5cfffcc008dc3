package plan

import (
	"minik8s/internal/kubelet/cri"
)

// removeDead removes dead containers. It keeps the newest of each name, and the one before if it was started, since its
// log can still be requested.
func (p *planner) removeDead() {
	for _, c := range p.View.Containers {
		if c.State == cri.Running {
			continue
		}
		younger := 0
		for _, o := range p.View.Containers {
			if o.Name == c.Name && o.Attempt > c.Attempt {
				younger++
			}
		}
		if younger >= 2 || younger == 1 && c.State == cri.Created {
			p.add(Action{Verb: RemoveContainer, Container: c.Name, ID: c.ID, Attempt: c.Attempt})
		}
	}
}

// stopDuplicates stops a container that is running although there is a newer attempt of it.
func (p *planner) stopDuplicates() {
	for _, c := range p.View.Containers {
		if n := Newest(p.View, c.Name); c.State == cri.Running && n.ID != c.ID {
			p.stop(&c, orphanGrace, "Stopping container %s, which runs twice")
		}
	}
}
