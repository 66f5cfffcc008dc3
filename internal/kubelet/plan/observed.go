package plan

import (
	"minik8s/internal/kubelet/cri"
)

// NewestStarted is like Newest, but only for containers that have been started: one that is only created says nothing
// about the pod yet.
func NewestStarted(view cri.Pod, name string) *cri.Container {
	var found *cri.Container
	for i := range view.Containers {
		c := &view.Containers[i]
		if c.Name == name && c.State != cri.Created && (found == nil || c.Attempt > found.Attempt) {
			found = c
		}
	}
	return found
}

// Newest returns the container of that name with the highest attempt; nil if there is none.
func Newest(view cri.Pod, name string) *cri.Container {
	var found *cri.Container
	for i := range view.Containers {
		c := &view.Containers[i]
		if c.Name == name && (found == nil || c.Attempt > found.Attempt) {
			found = c
		}
	}
	return found
}

// Active reports whether a container runs or is being started.
func (in Input) Active() bool {
	for _, c := range in.View.Containers {
		if c.State == cri.Running {
			return true
		}
	}
	for _, f := range in.State.InProgress {
		if f.Action.Verb == StartContainer {
			return true
		}
	}
	return false
}
