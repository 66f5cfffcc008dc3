package spec

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/containerd/containerd/pkg/cap"
	"golang.org/x/sys/unix"
)

// cgroup2Magic is the file system type of cgroup v2.
const cgroup2Magic = 0x63677270

// Host is what of the machine, and of what this process may do on it, decides about containers.
type Host struct {
	Capabilities []string // those of this process: more it cannot give
	Cgroup2      bool     // the hierarchy at /sys/fs/cgroup is v2
	Memory2      bool     // the memory controller is that of cgroup v2
	CountsSwap   bool     // swap can be counted into a memory limit
	OOMScoreAdj  int      // the least that containers are given
}

// ThisHost is read once: it does not change while the process runs.
var ThisHost = sync.OnceValue(func() Host {
	var f Host
	if list, err := cap.Current(); err == nil {
		f.Capabilities = list
	}
	var st unix.Statfs_t
	f.Cgroup2 = unix.Statfs("/sys/fs/cgroup", &st) == nil && st.Type == cgroup2Magic
	if f.Cgroup2 {
		data, err := os.ReadFile("/sys/fs/cgroup/cgroup.controllers")
		f.Memory2 = err == nil && slices.Contains(strings.Fields(string(data)), "memory")
		f.CountsSwap = f.Memory2 // runc leaves it where the kernel does not count swap
	} else {
		_, err := os.Stat("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes")
		f.CountsSwap = err == nil
	}
	// The kernel's OOM killer is to pick containers before this process. Without CAP_SYS_RESOURCE they could not be
	// given less than this process has either.
	f.OOMScoreAdj = -999
	if data, err := os.ReadFile("/proc/self/oom_score_adj"); err == nil {
		if v, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
			f.OOMScoreAdj = v + 1
		}
	}
	return f
})

// clampOOM is the nearest to adj that may be set.
func (f Host) clampOOM(adj int) int { return min(max(adj, f.OOMScoreAdj), 1000) }
