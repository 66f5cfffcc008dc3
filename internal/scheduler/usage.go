package scheduler

import (
	"context"
	"strconv"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/informer"
)

// nodeUsage is what a node really uses, as its kubelet writes it into its Lease with each heartbeat.
type nodeUsage struct {
	node                   string
	cpuMillis, memoryBytes int64
}

// usage is the watch of the Leases. It runs only while the strategy asks for it: a large cluster renews
// hundreds of Leases each second.
type usage struct{ stop context.CancelFunc }

func (s *Scheduler) followUsage(ctx context.Context, want bool) {
	switch {
	case want && s.usage == nil:
		ctx, stop := context.WithCancel(ctx)
		s.usage = &usage{stop}
		leases := informer.New[*coordinationv1.Lease](s.client, api.Leases,
			informer.Options{Namespace: corev1.NamespaceNodeLease, Views: s.views, Log: s.log})
		leases.OnChange(func(_, now *coordinationv1.Lease) {
			if r := usageIn(now); r != nil {
				s.enqueue(clusterEvent{usage: r})
			}
		})
		s.tasks.Go(func(context.Context) error { return leases.Run(ctx, func() {}) })
	case !want && s.usage != nil:
		s.usage.stop()
		s.usage = nil
	}
}

// usageIn reads a node's usage from its Lease; nil if it does not say.
func usageIn(lease *coordinationv1.Lease) *nodeUsage {
	if lease == nil {
		return nil
	}
	cpu, err1 := strconv.ParseInt(lease.Annotations[minik8s.UsageCPU], 10, 64)
	memory, err2 := strconv.ParseInt(lease.Annotations[minik8s.UsageMemory], 10, 64)
	if err1 != nil || err2 != nil || cpu < 0 || memory < 0 {
		return nil
	}
	return &nodeUsage{lease.Name, cpu, memory}
}
