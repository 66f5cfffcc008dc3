package containerd

import (
	"context"

	"minik8s/internal/kubelet/containerd/container"
	"minik8s/internal/kubelet/cri"
)

// Events implements cri.Runtime.
func (r *Runtime) Events(ctx context.Context) <-chan cri.Event {
	return r.events.subscribe(ctx)
}

// containerChanged reports that a container has started or ended.
func (r *Runtime) containerChanged(c *container.Container) {
	if c.Meta.Name == pauseName && c.Running() {
		return // the kubelet knows no such container; EnsureSandbox starts it
	}
	r.events.send(cri.Event{PodUID: c.Meta.PodUID, ContainerID: c.Meta.ID})
}
