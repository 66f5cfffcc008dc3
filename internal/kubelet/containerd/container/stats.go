package container

import (
	"time"

	"minik8s/internal/kubelet/cgroup"
	"minik8s/internal/kubelet/containerd/spec"
	"minik8s/internal/kubelet/cri"
)

// Stats is what a running container uses now; ok is false for one that does not run. It is read from its cgroup
// directly: asking every shim takes longer than all of it here.
func (c *Container) Stats(now time.Time) (s cri.Stats, ok bool) {
	if !c.Running() {
		return cri.Stats{}, false
	}
	cpu, memory, ok := cgroup.Usage(c.Meta.Cgroup, spec.ThisHost().Cgroup2)
	if !ok {
		return cri.Stats{}, false // it has just ended
	}
	return cri.Stats{
		PodUID: c.Meta.PodUID, Container: c.Meta.Name, ContainerID: c.Meta.ID,
		Time: now, CPUNanos: cpu, MemoryBytes: memory,
	}, true
}
