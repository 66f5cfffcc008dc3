package spec

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/containerd/containerd/pkg/cap"

	"minik8s/internal/kubelet/cgroup"
)

// Host is what a container's specification depends on: the machine's and this process's abilities.
type Host struct {
	Capabilities []string // this process's: containers cannot have more
	Cgroup2      bool     // the hierarchy at /sys/fs/cgroup is v2
	Memory2      bool     // the memory controller is that of cgroup v2
	CountsSwap   bool     // memory limits can include swap
	OOMScoreAdj  int      // the lowest value for containers
}

// ThisHost is read once: it does not change while the process runs.
var ThisHost = sync.OnceValue(func() Host {
	var f Host
	if list, err := cap.Current(); err == nil {
		f.Capabilities = list
	}
	f.Cgroup2 = cgroup.Unified()
	if f.Cgroup2 {
		data, err := os.ReadFile("/sys/fs/cgroup/cgroup.controllers")
		f.Memory2 = err == nil && slices.Contains(strings.Fields(string(data)), "memory")
		f.CountsSwap = f.Memory2 // on v2 runc ignores the setting where the kernel does not account for swap
	} else {
		_, err := os.Stat("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes")
		f.CountsSwap = err == nil
	}
	// The kernel's OOM killer should pick containers before this process. Without CAP_SYS_RESOURCE they cannot have a
	// lower value than this process's either.
	f.OOMScoreAdj = -999
	if data, err := os.ReadFile("/proc/self/oom_score_adj"); err == nil {
		if v, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
			f.OOMScoreAdj = v + 1
		}
	}
	return f
})

// clampOOM is the value nearest to adj that may be set.
func (f Host) clampOOM(adj int) int { return min(max(adj, f.OOMScoreAdj), 1000) }
