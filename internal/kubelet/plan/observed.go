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
