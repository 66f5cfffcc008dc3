package container

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/errdefs"
	"github.com/containerd/ttrpc"
	"golang.org/x/sys/unix"

	"minik8s/internal/kubelet/cri"
)

// Remove removes everything that may exist of a container, and kills it first if it runs. Each step also works if there
// is nothing to remove.
func (c *Container) Remove(ctx context.Context) error {
	id := c.Meta.ID
	if c.Running() {
		if err := c.kill(ctx); err != nil {
			return err
		}
	}
	if err := c.deleteTask(ctx); err != nil {
		return err
	}
	c.output.Detach()
	if err := c.set.snapshots().Remove(ctx, id); err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("containerd: root file system: %w", err)
	}
	if err := c.set.cfg.Containerd.Client.ContainerService().Delete(ctx, id); err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("containerd: container: %w", err)
	}
	if err := os.RemoveAll(c.dir); err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	c.set.forget(id)
	return nil
}

// deleteTask removes the task of a container that is not running, should it have one.
func (c *Container) deleteTask(ctx context.Context) error {
	if s, pid := c.get(); s.State == cri.Created && pid > 0 {
		if err := c.Discard(ctx); err != nil {
			return err
		}
	}
	req := &tasks.DeleteTaskRequest{ContainerID: c.Meta.ID}
	_, err := c.set.tasks().Delete(ctx, req)
	if err != nil && !c.set.cfg.Containerd.Embedded() && strings.Contains(err.Error(), ttrpc.ErrClosed.Error()) {
		// An external containerd's shim ends with its last container, sometimes before it has answered.
		_, err = c.set.tasks().Delete(ctx, req)
	}
	if err = fromGRPC(err); err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("containerd: delete task: %w", err)
	}
	return nil
}

// Discard ends the process of a container that never ran, as the first step of its removal: the process waits for its
// start, and containerd removes only stopped ones. If this daemon is killed after it, the next one removes the rest.
func (c *Container) Discard(ctx context.Context) error {
	if killed, err := c.endUnstarted(ctx); err != nil || !killed {
		return err
	}
	t := time.NewTimer(killTimeout)
	defer t.Stop()
	select {
	case <-c.exited:
	case <-ctx.Done():
	case <-t.C:
	}
	return nil
}

// endUnstarted kills the process of a container that never ran, so that its end does not count as the container's. It does
// not wait for that; killed is false if the process has ended already.
func (c *Container) endUnstarted(ctx context.Context) (killed bool, err error) {
	if err := c.markDiscarded(); err != nil {
		return false, err
	}
	_, err = c.set.tasks().Kill(ctx, &tasks.KillRequest{ContainerID: c.Meta.ID, Signal: uint32(unix.SIGKILL)})
	return err == nil, nil
}
