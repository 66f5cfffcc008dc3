package plan

import (
	"minik8s/internal/kubelet/cri"
)

// removeDead removes dead containers, except for the newest of a name and the one before, whose log can still be
// requested.
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

// stopDuplicates stops an attempt that runs beside a newer one.
func (p *planner) stopDuplicates() {
	for _, c := range p.View.Containers {
		if n := Newest(p.View, c.Name); c.State == cri.Running && n.ID != c.ID {
			p.stop(&c, orphanGrace, "Stopping container %s, which runs twice")
		}
	}
}
