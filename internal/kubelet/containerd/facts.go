package containerd

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

// facts are what this process may do and what its machine is like.
type facts struct {
	capabilities []string
	cgroup2      bool
	memory2      bool // the memory controller is that of cgroup v2
	countsSwap   bool // swap can be counted into a memory limit
	oomScoreAdj  int  // the least that containers are given
}

// hostFacts are read once: they do not change while the process runs.
var hostFacts = sync.OnceValue(func() facts {
	var f facts
	if list, err := cap.Current(); err == nil {
		f.capabilities = list
	}
	var st unix.Statfs_t
	f.cgroup2 = unix.Statfs("/sys/fs/cgroup", &st) == nil && st.Type == cgroup2Magic
	if f.cgroup2 {
		data, err := os.ReadFile("/sys/fs/cgroup/cgroup.controllers")
		f.memory2 = err == nil && slices.Contains(strings.Fields(string(data)), "memory")
		f.countsSwap = f.memory2 // runc leaves it where the kernel does not count swap
	} else {
		_, err := os.Stat("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes")
		f.countsSwap = err == nil
	}
	// Containers are sooner picked than this process when memory runs out. Without CAP_SYS_RESOURCE they could not be
	// given less either.
	f.oomScoreAdj = -999
	if data, err := os.ReadFile("/proc/self/oom_score_adj"); err == nil {
		if v, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
			f.oomScoreAdj = v + 1
		}
	}
	return f
})

// clampOOM is the nearest to adj that may be set.
func (f facts) clampOOM(adj int) int { return min(max(adj, f.oomScoreAdj), 1000) }
