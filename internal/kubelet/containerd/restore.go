package containerd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/api/types/task"
	"github.com/containerd/containerd/errdefs"
	"github.com/containerd/containerd/snapshots"

	"minik8s/internal/kubelet/containerd/embed"
	"minik8s/internal/kubelet/containerd/image"
	"minik8s/internal/kubelet/containerd/sandbox"
	"minik8s/internal/kubelet/cri"
)

// restore finds the sandboxes and containers of the last run, and removes what no record names.
func (r *Runtime) restore(ctx context.Context) error {
	records, err := r.readRecords()
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for _, rec := range records {
		if rec.Sandbox.ID != "" {
			used[rec.Sandbox.ID] = true
			r.net.Restore(rec.Sandbox.ID, rec.Sandbox.Addr)
			rec.Whole = rec.Whole && r.sandboxes.Whole(ctx, &rec.Sandbox)
			if rec.Sandbox.Addr.IsValid() {
				if err := r.net.AddHostPorts(rec.Sandbox.ID, rec.Sandbox.Addr, hostPorts(rec.Config.HostPorts)); err != nil {
					r.cfg.Log.Warn("a pod's host ports could not be restored", "pod", rec.Config.PodName, "err", err)
				}
			}
		}
		r.records[rec.Config.PodUID] = rec
	}
	if err := r.restoreContainers(ctx); err != nil {
		return err
	}
	return r.sweep(ctx, used)
}

// restoreContainers reads containerd's containers and asks the shims about them.
func (r *Runtime) restoreContainers(ctx context.Context) error {
	list, err := r.client.ContainerService().List(ctx)
	if err != nil {
		return fmt.Errorf("containerd: containers: %w", err)
	}
	for _, stored := range list {
		ext, ok := stored.Extensions[metaType]
		if !ok {
			continue // not ours; made with ctr
		}
		var m meta
		if err := json.Unmarshal(ext.GetValue(), &m); err != nil {
			return fmt.Errorf("containerd: container %s: %w", stored.ID, err)
		}
		c := newContainer(m, r.containerDir(m.ID))
		if data, err := os.ReadFile(filepath.Join(c.dir, "state.json")); err == nil {
			if err := json.Unmarshal(data, &c.state); err != nil {
				c.state = state{}
			}
		}
		r.addContainer(c)
		if c.state.State == cri.Exited {
			close(c.exited)
			continue
		}
		if c.state.Discarded {
			r.discard(ctx, "the container "+m.ID, func(ctx context.Context) error { return r.removeContainer(ctx, c) })
			continue
		}
		if c.state.StartError != "" {
			continue
		}
		if err := r.restoreTask(ctx, c); err != nil {
			r.cfg.Log.Warn("a container of the last run was not found again as it should be", "container", m.Name, "pod", m.PodName, "err", err)
		}
	}
	return nil
}

// startCutOff is the exit code of runc's init when its start is interrupted: the shim kills runc when the daemon that
// requested the start has been killed. The program has not started then. (A program that exits with this code at the
// moment when the daemon is killed is taken for one that has not started, and is run again.)
const startCutOff = 255

// restoreTask finds out the state of a container that had not ended.
func (r *Runtime) restoreTask(ctx context.Context, c *container) error {
	resp, err := r.client.TaskService().Get(ctx, &tasks.GetRequest{ContainerID: c.meta.ID})
	if err != nil {
		if err := errdefs.FromGRPC(err); !errdefs.IsNotFound(err) {
			r.cfg.Log.Warn("a container's shim does not answer", "container", c.meta.Name, "err", err)
		}
		_, err := os.Stat(c.dir)
		switch {
		case errors.Is(err, os.ErrNotExist): // it is on a tmpfs, so the machine was rebooted
			r.recordLost(c)
		case err == nil && c.state.State == cri.Created:
			// Creating it was interrupted, so the kubelet never got its id.
			r.discard(ctx, "the container "+c.meta.ID, func(ctx context.Context) error { return r.removeContainer(ctx, c) })
		default:
			r.recordExit(c, 137, time.Now())
		}
		return nil
	}
	p := resp.Process
	if c.meta.LogPath != "" {
		if c.output, err = r.startOutput(c, c.meta.LogPath, false); err != nil {
			return err
		}
	}
	c.pid = p.Pid
	switch p.Status {
	case task.Status_STOPPED:
		if c.state.State == cri.Created && p.ExitStatus == startCutOff {
			r.discard(ctx, "the container "+c.meta.ID, func(ctx context.Context) error { return r.removeContainer(ctx, c) })
			return nil
		}
		at := time.Now()
		if p.ExitedAt != nil {
			at = p.ExitedAt.AsTime()
		}
		r.recordExit(c, int32(p.ExitStatus), at)
	case task.Status_CREATED:
	default:
		if _, err = c.advance(cri.Running, func(s *state) { s.StartedAt = c.meta.CreatedAt }); err == nil {
			err = r.killExecs(ctx, c)
		}
	}
	return err
}

// sweep removes what no record names: sandboxes, snapshots, directories and links. What cannot be removed now, such
// as a busy mount or cgroup, does not prevent the start: it is logged and removed later.
func (r *Runtime) sweep(ctx context.Context, used map[string]bool) error {
	if err := r.sweepSandboxes(ctx, used); err != nil {
		return err
	}
	if err := r.sweepSnapshots(ctx); err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Join(r.cfg.RunDir, "containers"))
	if err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	for _, e := range entries {
		if r.container(e.Name()) == nil {
			dir := r.containerDir(e.Name())
			r.discard(ctx, dir, func(context.Context) error { return os.RemoveAll(dir) })
		}
	}
	return nil
}

// sweepSandboxes removes sandboxes that are not used, and shims and links that belong to none.
func (r *Runtime) sweepSandboxes(ctx context.Context, used map[string]bool) error {
	ids, err := r.sandboxes.List(ctx)
	if err != nil {
		return err
	}
	var keep []string
	for _, id := range ids {
		if used[id] {
			keep = append(keep, id)
			continue
		}
		r.discard(ctx, "the sandbox "+id, func(ctx context.Context) error {
			return r.sandboxes.Remove(ctx, &sandbox.Sandbox{ID: id})
		})
	}
	if r.containerd.Embedded() {
		if err := r.sandboxes.EndOrphans(ctx, used); err != nil {
			r.cfg.Log.Warn("shims of the last run could not be ended", "err", err)
		}
		for id := range used { // an earlier version did not move shims; or the last run was killed before it did
			r.sandboxes.MoveShim(ctx, id)
		}
	}
	if err := r.net.Sweep(keep); err != nil {
		r.cfg.Log.Warn("links of the last run could not be removed", "err", err)
	}
	return nil
}

// sweepSnapshots removes the root file systems of containers that do not exist.
func (r *Runtime) sweepSnapshots(ctx context.Context) error {
	sn := r.client.SnapshotService(r.containerd.Snapshotter)
	var stale []string
	err := sn.Walk(ctx, func(_ context.Context, i snapshots.Info) error {
		if i.Kind != snapshots.KindCommitted && i.Labels[embed.GCRoot] != "" && r.container(i.Name) == nil ||
			strings.HasPrefix(i.Name, image.ViewPrefix) {
			stale = append(stale, i.Name)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("containerd: snapshots: %w", err)
	}
	for _, name := range stale {
		r.discard(ctx, "the file system "+name, func(ctx context.Context) error {
			if err := sn.Remove(ctx, name); err != nil && !errdefs.IsNotFound(err) {
				return err
			}
			return nil
		})
	}
	return nil
}

// resync reads the state of all containers after a gap in the event stream.
func (r *Runtime) resync(ctx context.Context) {
	for _, c := range r.allContainers() {
		if s, _ := c.get(); s.State != cri.Running {
			continue
		}
		resp, err := r.client.TaskService().Get(ctx, &tasks.GetRequest{ContainerID: c.meta.ID})
		switch {
		case err == nil && resp.Process.Status == task.Status_STOPPED:
			r.recordExit(c, int32(resp.Process.ExitStatus), resp.Process.ExitedAt.AsTime())
		case err != nil && errdefs.IsNotFound(errdefs.FromGRPC(err)):
			r.recordExit(c, 137, time.Now())
		}
	}
	r.events.send(cri.Event{})
}
