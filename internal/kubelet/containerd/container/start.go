package container

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"

	"minik8s/internal/clock"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/work"
)

// Start lets the container's process run its command; it does nothing for one that was started before. The error is a
// *cri.StartError if the command cannot be executed; the container counts as ended then.
func (c *Container) Start(ctx context.Context) error {
	s, _ := c.get()
	if s.State != cri.Created {
		return nil
	}
	if s.StartError != "" {
		return c.failStart(s.StartError, s.ExitCode)
	}
	if err := c.set.cfg.Work.Acquire(ctx, work.Container); err != nil {
		return err
	}
	defer c.set.cfg.Work.Release()
	_, err := c.set.tasks().Start(ctx, &tasks.StartRequest{ContainerID: c.Meta.ID})
	if err != nil {
		if msg, code, ok := startFailure(err); ok {
			return c.failStart(msg, code)
		}
		return fmt.Errorf("containerd: start: %w", fromGRPC(err))
	}
	moved, err := c.advance(cri.Running, func(s *state) { s.StartedAt = clock.Now() })
	if moved {
		c.set.cfg.Changed(c)
	}
	return err
}

// failStart makes a container one that has exited without ever running.
func (c *Container) failStart(msg string, code int32) error {
	moved, err := c.advance(cri.Exited, func(s *state) {
		s.StartedAt, s.FinishedAt = time.Time{}, clock.Now()
		s.ExitCode, s.StartError = code, msg
	})
	if moved {
		c.set.cfg.Changed(c)
	}
	return errors.Join(&cri.StartError{Message: msg, ExitCode: code}, err)
}
