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

// shimEnded handles the end of a shim. If a pod still has it, its containers are killed, because without a shim
// their exits would not be reported, and the sandbox counts as broken.
func (r *Runtime) shimEnded(ctx context.Context, sandbox string) {
	broken := r.records.setBroken(sandbox)
	if broken == nil {
		return
	}
	pod := broken.Config
	r.cfg.Log.Warn("the shim of a pod has ended; the pod's containers are ended with it",
		"namespace", pod.PodNamespace, "pod", pod.PodName)
	if err := r.records.write(broken); err != nil {
		r.cfg.Log.Warn("a sandbox could not be recorded as broken", "err", err)
	}
	for _, c := range r.containers.OfPod(pod.PodUID) {
		c.EndWithoutShim(ctx)
	}
	r.events.send(cri.Event{PodUID: pod.PodUID})
}
