package plan

import (
	"time"

	"minik8s/internal/kubelet/cri"
)

// The back-off of restarts is Kubernetes' (pkg/kubelet/kubelet.go): 10 s, doubled with each restart up to
// 5 min. A container that ran for twice the longest back-off starts over.
const (
	MinRestartBackoff = 10 * time.Second
	maxRestartBackoff = 5 * time.Minute
	backoffResetAfter = 2 * maxRestartBackoff
)

// RestartAt is when the exited container c may be started again, and the back-off that is counted for it. A
// zero time means at once.
func (s *ContainerState) RestartAt(c *cri.Container) (time.Time, time.Duration) {
	if c.Lost { // it ended with the machine, which is not a crash
		return time.Time{}, 0
	}
	backoff, since := s.Backoff, s.BackoffSetAt
	if since.IsZero() { // an earlier run of the daemon started it: estimate from the attempts
		backoff, since = estimateBackoff(c.Attempt), c.CreatedAt
	}
	if backoff == 0 || c.FinishedAt.Sub(since) > backoffResetAfter {
		return time.Time{}, 0
	}
	return c.FinishedAt.Add(backoff), backoff
}

// Started records the start of an attempt after the exit of prev (nil: this is the first attempt).
func (s *ContainerState) Started(prev *cri.Container, now time.Time) {
	if prev == nil || prev.Lost {
		s.Backoff, s.BackoffSetAt = 0, now
		return
	}
	_, backoff := s.RestartAt(prev)
	if backoff == 0 {
		backoff = MinRestartBackoff
	} else {
		backoff = min(2*backoff, maxRestartBackoff)
	}
	s.Backoff, s.BackoffSetAt = backoff, now
}

// estimateBackoff is the back-off after the given attempt if no run lasted long.
func estimateBackoff(attempt int) time.Duration {
	if attempt <= 0 {
		return 0
	}
	if attempt > 5 {
		return maxRestartBackoff
	}
	return min(MinRestartBackoff<<(attempt-1), maxRestartBackoff)
}
