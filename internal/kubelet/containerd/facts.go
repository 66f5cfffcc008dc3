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
	oomScoreAdj  int // the least that containers can be given
}

// hostFacts are read once: they do not change while the process runs.
var hostFacts = sync.OnceValue(func() facts {
	var f facts
	if list, err := cap.Current(); err == nil {
		f.capabilities = list
	}
	var st unix.Statfs_t
	f.cgroup2 = unix.Statfs("/sys/fs/cgroup", &st) == nil && st.Type == cgroup2Magic
	f.oomScoreAdj = -1000
	if !slices.Contains(f.capabilities, "CAP_SYS_RESOURCE") {
		if data, err := os.ReadFile("/proc/self/oom_score_adj"); err == nil {
			if v, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
				f.oomScoreAdj = v
			}
		}
	}
	return f
})

// clampOOM is the nearest to adj that may be set.
func (f facts) clampOOM(adj int) int { return min(max(adj, f.oomScoreAdj), 1000) }
