package task

import (
	"context"
	"fmt"

	cgroup1 "github.com/containerd/cgroups/v3/cgroup1/stats"
	cgroup2 "github.com/containerd/cgroups/v3/cgroup2/stats"
	"github.com/containerd/containerd/errdefs"
	"github.com/containerd/containerd/protobuf"
	"github.com/containerd/containerd/protobuf/types"

	"minik8s/internal/kubelet/cgroup"
	"minik8s/internal/kubelet/cri"
)

// Stats implements runtime.Task, in the form that containerd's shim answers in: "ctr task metrics" prints it. The kubelet reads
// cgroups itself.
func (t *Task) Stats(context.Context) (*types.Any, error) {
	var u cri.Usage
	if t.cgroup == "" || !cgroup.NewReader(cgroup.Mounted, cgroup.Unified()).Read(t.cgroup, &u) {
		return nil, fmt.Errorf("cgroup of task %s: %w", t.key.id, errdefs.ErrNotFound)
	}
	if cgroup.Unified() {
		return protobuf.MarshalAnyToProto(unifiedMetrics(&u))
	}
	return protobuf.MarshalAnyToProto(legacyMetrics(&u))
}

func legacyMetrics(u *cri.Usage) *cgroup1.Metrics {
	return &cgroup1.Metrics{
		Pids: &cgroup1.PidsStat{Current: u.Processes},
		CPU: &cgroup1.CPUStat{
			Usage:      &cgroup1.CPUUsage{Total: u.CPU, User: u.UserCPU, Kernel: u.SystemCPU},
			Throttling: &cgroup1.Throttle{Periods: u.Periods, ThrottledPeriods: u.ThrottledPeriods, ThrottledTime: u.Throttled},
		},
		Memory: &cgroup1.MemoryStat{
			Cache: u.Cache, RSS: u.RSS, MappedFile: u.Mapped, PgFault: u.Faults, PgMajFault: u.MajorFaults,
			TotalCache: u.Cache, TotalRSS: u.RSS, TotalMappedFile: u.Mapped, TotalPgFault: u.Faults, TotalPgMajFault: u.MajorFaults,
			TotalInactiveFile: u.Memory - u.WorkingSet, Usage: &cgroup1.MemoryEntry{Usage: u.Memory, Max: u.Peak},
			Swap: &cgroup1.MemoryEntry{Usage: u.Memory + u.Swap},
		},
		MemoryOomControl: &cgroup1.MemoryOomControl{OomKill: u.OOMKills},
	}
}

func unifiedMetrics(u *cri.Usage) *cgroup2.Metrics {
	return &cgroup2.Metrics{
		Pids: &cgroup2.PidsStat{Current: u.Processes},
		CPU: &cgroup2.CPUStat{UsageUsec: u.CPU / 1000, UserUsec: u.UserCPU / 1000, SystemUsec: u.SystemCPU / 1000,
			NrPeriods: u.Periods, NrThrottled: u.ThrottledPeriods, ThrottledUsec: u.Throttled / 1000},
		Memory: &cgroup2.MemoryStat{Anon: u.RSS, File: u.Cache, FileMapped: u.Mapped, Pgfault: u.Faults, Pgmajfault: u.MajorFaults,
			InactiveFile: u.Memory - u.WorkingSet, Usage: u.Memory, SwapUsage: u.Swap},
		MemoryEvents: &cgroup2.MemoryEvents{OomKill: u.OOMKills},
	}
}
