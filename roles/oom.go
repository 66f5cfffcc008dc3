package roles

import (
	"log/slog"
	"os"
)

// oomScoreAdj is that of Kubernetes' kubelet: less than any pod's.
const oomScoreAdj = "-999"

// outliveMemory has the kernel pick others first when memory runs out. It takes a right that not every root
// has; without it, pods are given more than what this process has.
func outliveMemory(log *slog.Logger) {
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte(oomScoreAdj), 0); err != nil {
		log.Debug("the daemon is as likely to be killed as others when memory runs out", "error", err)
	}
}
