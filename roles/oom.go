package roles

import (
	"log/slog"
	"os"
)

// oomScoreAdj is that of Kubernetes' kubelet: lower than any pod's.
const oomScoreAdj = "-999"

// lowerOOMScore makes the kernel's OOM killer prefer other processes. It needs CAP_SYS_RESOURCE, which not every root
// has; without it, pods get higher scores than this process's instead.
func lowerOOMScore(log *slog.Logger) {
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte(oomScoreAdj), 0); err != nil {
		log.Debug("the daemon is as likely to be killed as others when memory runs out", "error", err)
	}
}
