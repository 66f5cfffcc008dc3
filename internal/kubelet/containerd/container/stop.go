package container

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/errdefs"
	"github.com/moby/sys/signal"
	"golang.org/x/sys/unix"

	"minik8s/internal/kubelet/cgroup"
)

// killTimeout bounds the wait for the end of a killed process. Only a process that is stuck in the kernel takes
// longer.
const killTimeout = 30 * time.Second

// Stop ends a running container: by its stop signal, and after grace by SIGKILL, or at once if grace is 0. It waits
// until the container has ended, or ctx.
func (c *Container) Stop(ctx context.Context, grace time.Duration) error {
	if !c.Running() {
		return nil
	}
	if grace > 0 {
		sig := unix.SIGTERM
		if c.Meta.StopSignal != "" {
			if parsed, err := signal.ParseSignal(c.Meta.StopSignal); err == nil {
				sig = parsed
			}
		}
		if err := c.signal(ctx, sig); err != nil {
			return err
		}
		t := time.NewTimer(grace)
		defer t.Stop()
		select {
		case <-c.exited:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
	}
	return c.kill(ctx)
}

// kill ends a running container and waits until it has ended.
func (c *Container) kill(ctx context.Context) error {
	// By containerd, which thaws it: a paused container would not end.
	if err := c.send(ctx, unix.SIGKILL, !c.Meta.OwnPIDs); err != nil {
		return err
	}
	t := time.NewTimer(killTimeout)
	defer t.Stop()
	select {
	case <-c.exited:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return fmt.Errorf("containerd: container %s of pod %s/%s does not end on SIGKILL", c.Meta.Name, c.Meta.PodNamespace, c.Meta.PodName)
	}
}

// signal signals the container's first process: directly, where it is certain which process that is, because a shim of an
// external containerd would start runc, which takes 10 ms; else by containerd.
func (c *Container) signal(ctx context.Context, sig unix.Signal) error {
	_, pid := c.get()
	if pid > 0 && c.Meta.Cgroup != "" {
		fd, err := unix.PidfdOpen(int(pid), 0)
		if err == nil {
			defer unix.Close(fd)
			// The descriptor refers to the process that has the number now; it is the container's only if it is in
			// the container's cgroup.
			if cgroup.Has(c.Meta.Cgroup, pid) {
				if err := unix.PidfdSendSignal(fd, sig, nil, 0); err == nil || errors.Is(err, unix.ESRCH) {
					return nil
				}
			}
		}
	}
	return c.send(ctx, sig, false)
}

// send has containerd send a signal to the first process, or to all. One that has ended needs none.
func (c *Container) send(ctx context.Context, sig unix.Signal, all bool) error {
	_, err := c.set.tasks().Kill(ctx, &tasks.KillRequest{ContainerID: c.Meta.ID, Signal: uint32(sig), All: all})
	switch {
	case err == nil, errdefs.IsNotFound(errdefs.FromGRPC(err)), strings.Contains(err.Error(), "not running"), strings.Contains(err.Error(), "already finished"):
		return nil
	}
	return fmt.Errorf("containerd: signal: %w", fromGRPC(err))
}
