package containerd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/errdefs"
	"github.com/containerd/ttrpc"
	"github.com/moby/sys/signal"
	"golang.org/x/sys/unix"

	"minik8s/internal/kubelet/containerd/sandbox"
	"minik8s/internal/kubelet/cri"
)

// killTimeout bounds the wait for the end of a killed process. Only a process that is stuck in the kernel takes
// longer.
const killTimeout = 30 * time.Second

// StopContainer implements cri.Runtime.
func (r *Runtime) StopContainer(ctx context.Context, id string, grace time.Duration) error {
	ctx = r.ns(ctx)
	defer r.sandboxes.Busy()()
	c := r.container(id)
	if c == nil {
		return nil
	}
	if s, _ := c.get(); s.State != cri.Running {
		return nil
	}
	if grace > 0 {
		sig := unix.SIGTERM
		if c.meta.StopSignal != "" {
			if parsed, err := signal.ParseSignal(c.meta.StopSignal); err == nil {
				sig = parsed
			}
		}
		if err := r.signal(ctx, c, sig); err != nil {
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
	return r.kill(ctx, c)
}

// kill ends a running container and waits until it has ended.
func (r *Runtime) kill(ctx context.Context, c *container) error {
	if c.meta.OwnPIDs {
		if err := r.signal(ctx, c, unix.SIGKILL); err != nil {
			return err
		}
	} else {
		_, err := r.client.TaskService().Kill(ctx, &tasks.KillRequest{ContainerID: c.meta.ID, Signal: uint32(unix.SIGKILL), All: true})
		if err != nil && !errdefs.IsNotFound(errdefs.FromGRPC(err)) {
			return fmt.Errorf("containerd: kill: %w", fromGRPC(err))
		}
	}
	t := time.NewTimer(killTimeout)
	defer t.Stop()
	select {
	case <-c.exited:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return fmt.Errorf("containerd: container %s of pod %s/%s does not end on SIGKILL", c.meta.Name, c.meta.PodNamespace, c.meta.PodName)
	}
}

// signal signals the container's first process: directly, where it is certain which process that is, because the shim
// would start runc, which takes 10 ms; else by the shim.
func (r *Runtime) signal(ctx context.Context, c *container, sig unix.Signal) error {
	_, pid := c.get()
	if pid > 0 && c.meta.Cgroup != "" {
		fd, err := unix.PidfdOpen(int(pid), 0)
		if err == nil {
			defer unix.Close(fd)
			// The descriptor refers to the process that has the number now; it is the container's only if it is in
			// the container's cgroup.
			if inCgroup(pid, c.meta.Cgroup) {
				if err := unix.PidfdSendSignal(fd, sig, nil, 0); err == nil || errors.Is(err, unix.ESRCH) {
					return nil
				}
			}
		}
	}
	_, err := r.client.TaskService().Kill(ctx, &tasks.KillRequest{ContainerID: c.meta.ID, Signal: uint32(sig)})
	if err != nil && !errdefs.IsNotFound(errdefs.FromGRPC(err)) {
		if strings.Contains(err.Error(), "not running") || strings.Contains(err.Error(), "already finished") {
			return nil
		}
		return fmt.Errorf("containerd: signal: %w", fromGRPC(err))
	}
	return nil
}

func inCgroup(pid uint32, cgroup string) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		if strings.HasSuffix(strings.TrimSpace(line), cgroup) {
			return true
		}
	}
	return false
}

// deleteTask removes the task of a container that is not running, also when its shim is gone.
func (r *Runtime) deleteTask(ctx context.Context, c *container) error {
	id := c.meta.ID
	if s, pid := c.get(); s.State == cri.Created && pid > 0 {
		// Its process waits for its start; the shim removes only stopped ones.
		if err := c.discard(); err != nil {
			return err
		}
		_, err := r.client.TaskService().Kill(ctx, &tasks.KillRequest{ContainerID: id, Signal: uint32(unix.SIGKILL)})
		if err == nil {
			t := time.NewTimer(killTimeout)
			select {
			case <-c.exited:
			case <-ctx.Done():
			case <-t.C:
			}
			t.Stop()
		}
	}
	_, err := r.client.TaskService().Delete(ctx, &tasks.DeleteTaskRequest{ContainerID: id})
	if err != nil && !r.containerd.Embedded() && strings.Contains(err.Error(), ttrpc.ErrClosed.Error()) {
		// An external containerd's shim ends with its last container, sometimes before it has answered.
		_, err = r.client.TaskService().Delete(ctx, &tasks.DeleteTaskRequest{ContainerID: id})
	}
	if err == nil {
		return nil
	}
	if err := errdefs.FromGRPC(err); !errdefs.IsNotFound(err) && r.sandboxes.ShimAlive(ctx, c.meta.SandboxID) {
		return fmt.Errorf("containerd: delete task: %w", fromGRPC(err))
	}
	return r.deleteByRunc(ctx, id)
}

// deleteByRunc removes what is left of a container after the end of its shim: its processes, its cgroup, its mount
// and its bundle.
func (r *Runtime) deleteByRunc(ctx context.Context, id string) error {
	if !r.containerd.Embedded() {
		return nil
	}
	root := r.containerd.RuncRoot()
	if _, err := os.Stat(filepath.Join(root, id)); err == nil {
		out, err := exec.CommandContext(ctx, r.containerd.Programs.Runc, "--root", root, "delete", "--force", id).CombinedOutput()
		if err != nil {
			return fmt.Errorf("containerd: runc delete: %w: %s", err, out)
		}
	}
	bundle := r.containerd.Bundle(id)
	if err := sandbox.Unmount(filepath.Join(bundle, "rootfs")); err != nil {
		return err
	}
	if err := os.RemoveAll(bundle); err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	return nil
}
