package container

import (
	"time"

	"golang.org/x/sys/unix"

	"minik8s/internal/clock"
	"minik8s/internal/kubelet/cgroup"
	"minik8s/internal/kubelet/cri"
)

const (
	// flushTime is how long the report of an exit waits until the container's last output is logged.
	flushTime = time.Second
	// quickEnd is within how long a program that cannot be executed ends.
	quickEnd = 5 * time.Second
)

// ended records a container's exit and reports it.
func (c *Container) ended(code int32, at time.Time) {
	if s, _ := c.get(); s.State == cri.Exited || c.exitedDiscarded() {
		return
	}
	c.output.Wait(flushTime)
	oom := code != 0 && cgroup.OOMKills(c.Meta.Cgroup) > 0
	moved, err := c.advance(cri.Exited, func(s *state) {
		s.ExitCode, s.FinishedAt = code, at
		s.OOMKilled = s.OOMKilled && code != 0 || oom
		if s.StartedAt.IsZero() {
			// It ended before the event of its start.
			s.StartedAt = at
		}
	})
	if err != nil {
		c.set.cfg.Log.Warn("a container's exit could not be written down", "container", c.Meta.Name, "err", err)
	}
	if moved {
		if s, _ := c.get(); c.Meta.Image != "" && looksDamaged(s) {
			c.set.cfg.Damaged(c.Meta.Image)
		}
		c.set.cfg.Changed(c)
	}
}

// lost records the end of a container that existed when the machine went down. Whether and how it had exited before is
// not known.
func (c *Container) lost() {
	began, ended := c.Meta.CreatedAt, clock.Now()
	// It ended before the machine was started. The clock may have been set since, so the times are checked.
	if at := bootTime(); at.After(began) && at.Before(ended) {
		ended = at
	}
	if ended.Before(began) {
		ended = began
	}
	if _, err := c.advance(cri.Exited, func(s *state) {
		s.StartedAt, s.FinishedAt, s.ExitCode, s.Lost = began, ended, 137, true
	}); err != nil {
		c.set.cfg.Log.Warn("a container's end could not be written down", "container", c.Meta.Name, "err", err)
	}
}

// looksDamaged reports whether a container has ended like a program with damaged files, which cannot be executed or
// loaded.
func looksDamaged(s state) bool {
	switch s.ExitCode {
	case 126, 127, 255, 128 + 4, 128 + 7, 128 + 11: // not executable, not found, runc's; SIGILL, SIGBUS, SIGSEGV
		return s.FinishedAt.Sub(s.StartedAt) < quickEnd
	}
	return false
}

// bootTime is when the machine was booted, by the present clock.
func bootTime() time.Time {
	var up unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &up) != nil {
		return time.Time{}
	}
	return clock.Now().Add(-time.Duration(up.Nano()))
}
