package node

import (
	"context"
	"errors"
	"testing"
	"time"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/kubelet/cri"
)

// meteredRuntime has statistics and nothing else.
type meteredRuntime struct {
	cri.Runtime
	stats []cri.Stats
	err   error
}

func (r *meteredRuntime) Stats(context.Context, func(string) bool) ([]cri.Stats, error) {
	return r.stats, r.err
}

func TestUsageMeter(t *testing.T) {
	rt, meter, now := &meteredRuntime{}, usageMeter{}, time.Unix(1000, 0)
	second := uint64(time.Second)
	expect := func(what, cpu, memory string) {
		t.Helper()
		got := meter.read(t.Context(), rt, now)
		if got[minik8s.UsageCPU] != cpu || got[minik8s.UsageMemory] != memory {
			t.Errorf("%s: %v, want %s and %s", what, got, cpu, memory)
		}
		now = now.Add(10 * time.Second)
	}
	rt.stats = []cri.Stats{{Container: "c", ContainerID: "a", Usage: cri.Usage{CPU: 500 * second, WorkingSet: 100}}}
	if got := meter.read(t.Context(), rt, now); got != nil {
		t.Errorf("the first time nothing is known of the past: %v", got)
	}
	now = now.Add(10 * time.Second)
	rt.stats = []cri.Stats{{PodUID: "the pod", Usage: cri.Usage{CPU: 900 * second, WorkingSet: 900}}, {Container: "c", ContainerID: "a", Usage: cri.Usage{CPU: 505 * second, WorkingSet: 110}}, {Container: "c", ContainerID: "b", Usage: cri.Usage{CPU: 10 * second, WorkingSet: 7}}}
	expect("half a core, and a new container with a whole one", "1500", "117")
	rt.stats = []cri.Stats{{Container: "c", ContainerID: "b", Usage: cri.Usage{CPU: 10 * second, WorkingSet: 7}}}
	expect("one has ended, one is idle", "0", "7")
	rt.err = errors.New("busy")
	if got := meter.read(t.Context(), rt, now); got != nil {
		t.Errorf("without statistics: %v", got)
	}
}
