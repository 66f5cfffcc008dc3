package plan

import (
	"time"

	"minik8s/internal/kubelet/cri"
)

// The back-off of restarts is Kubernetes' (pkg/kubelet/kubelet.go): 10 s, doubled with each restart up to 5 min. It is
// reset for a container that ran for twice the longest back-off.
const (
	MinRestartBackoff = 10 * time.Second
	maxRestartBackoff = 5 * time.Minute
	backoffResetAfter = 2 * maxRestartBackoff
)

// RestartAt returns when the exited container c may be started again, and its back-off. A zero time means at once.
func (s *ContainerState) RestartAt(c *cri.Container) (time.Time, time.Duration) {
	if c.Lost { // it ended because the machine stopped, which is not a crash
		return time.Time{}, 0
	}
	backoff, since := s.Backoff, s.BackoffSetAt
	if since.IsZero() { // started by an earlier run of the daemon: estimate from the number of attempts
		backoff, since = estimateBackoff(c.Attempt), c.CreatedAt
	}
	if backoff == 0 || c.FinishedAt.Sub(since) > backoffResetAfter {
		return time.Time{}, 0
	}
	return c.FinishedAt.Add(backoff), backoff
}

// Started records that an attempt was started after prev exited (nil: it is the first attempt).
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

// estimateBackoff returns the back-off after the given attempt, assuming that no attempt ran long.
func estimateBackoff(attempt int) time.Duration {
	if attempt <= 0 {
		return 0
	}
	if attempt > 5 {
		return maxRestartBackoff
	}
	return min(MinRestartBackoff<<(attempt-1), maxRestartBackoff)
}
