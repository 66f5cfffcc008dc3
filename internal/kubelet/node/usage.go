package node

import (
	"context"
	"strconv"
	"time"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/kubelet/cri"
)

// usageMeter turns what containers have used since they began into what they use now. It belongs to the
// goroutine of the heartbeat.
type usageMeter struct {
	last map[string]cri.Stats // by container
	at   time.Time
}

// read is the annotations that say what the node's containers use; nil if the runtime does not say, or if
// this is the first look: since when the processor was used is not known then, and a 0 would make a busy
// node look idle to the scheduler.
func (u *usageMeter) read(ctx context.Context, rt cri.Runtime, now time.Time) map[string]string {
	stats, err := rt.Stats(ctx)
	if err != nil {
		return nil
	}
	nanos, memory := uint64(0), uint64(0)
	next := make(map[string]cri.Stats, len(stats))
	for _, s := range stats {
		next[s.ContainerID] = s
		memory += s.MemoryBytes
		// Of a container that began since the last time all was used since then.
		if before := u.last[s.ContainerID].CPUNanos; s.CPUNanos > before {
			nanos += s.CPUNanos - before
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
