package node

import (
	"context"
	"strconv"
	"time"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/kubelet/cri"
)

// usageMeter computes the present usage from containers' counters since their start. Only the heartbeat's goroutine
// may use it.
type usageMeter struct {
	last map[string]cri.Stats // by container
	at   time.Time
}

// read is the annotations with the usage of the node's containers; nil if the runtime has an error, or at the first
// call: a rate needs two readings, and a 0 would make a busy node look idle to the scheduler.
func (u *usageMeter) read(ctx context.Context, rt Runtime, now time.Time) map[string]string {
	stats, err := rt.Stats(ctx, nil)
	if err != nil {
		return nil
	}
	nanos, memory := uint64(0), uint64(0)
	next := make(map[string]cri.Stats, len(stats))
	for _, s := range stats {
		if s.Container == "" {
			continue // a pod as a whole
		}
		next[s.ContainerID] = s
		memory += s.WorkingSet
		// All of the time of a container that started since the last reading was used since then.
		if before := u.last[s.ContainerID].CPU; s.CPU > before {
			nanos += s.CPU - before
		}
	}
	elapsed := now.Sub(u.at)
	first := u.at.IsZero()
	u.last, u.at = next, now
	if first || elapsed <= 0 {
		return nil
	}
	nanos = nanos * 1000 / uint64(elapsed)
	return map[string]string{
		minik8s.UsageCPU: strconv.FormatUint(nanos, 10), minik8s.UsageMemory: strconv.FormatUint(memory, 10),
	}
}
