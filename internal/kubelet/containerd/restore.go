package containerd

import (
	"context"
	"fmt"
	"strings"

	"github.com/containerd/containerd/errdefs"
	"github.com/containerd/containerd/snapshots"

	"minik8s/internal/kubelet/containerd/container"
	"minik8s/internal/kubelet/containerd/image"
	"minik8s/internal/kubelet/containerd/sandbox"
)

// restore finds the sandboxes and containers of the last run, and removes what no record names.
func (r *Runtime) restore(ctx context.Context) error {
	records, err := r.records.read()
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for _, rec := range records {
		if rec.Sandbox.ID != "" {
			used[rec.Sandbox.ID] = true
			r.net.Restore(rec.Sandbox.ID, rec.Sandbox.Addr)
			rec.Whole = rec.Whole && r.sandboxes.Whole(&rec.Sandbox)
			if rec.Sandbox.Addr.IsValid() {
				if err := r.net.AddHostPorts(rec.Sandbox.ID, rec.Sandbox.Addr, hostPorts(rec.Config.HostPorts)); err != nil {
					r.cfg.Log.Warn("a pod's host ports could not be restored", "pod", rec.Config.PodName, "err", err)
				}
			}
		}
		r.records.set(rec)
	}
	if err := r.containers.Restore(ctx, r.garbage.discard); err != nil {
		return err
	}
	return r.sweep(ctx, used)
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
	return r.containers.SweepDirs(ctx, r.garbage.discard)
}

// sweepSandboxes removes sandboxes that are not used, and links that belong to none.
func (r *Runtime) sweepSandboxes(ctx context.Context, used map[string]bool) error {
	ids, err := r.sandboxes.List()
	if err != nil {
		return err
	}
	var keep []string
	for _, id := range ids {
		if used[id] {
			keep = append(keep, id)
			continue
		}
		r.garbage.discard(ctx, "the sandbox "+id, func(context.Context) error {
			return r.sandboxes.Remove(&sandbox.Sandbox{ID: id})
		})
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
		if container.OwnsLayer(i) && r.containers.Get(i.Name) == nil ||
			strings.HasPrefix(i.Name, image.ViewPrefix) {
			stale = append(stale, i.Name)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("containerd: snapshots: %w", err)
	}
	for _, name := range stale {
		r.garbage.discard(ctx, "the file system "+name, func(ctx context.Context) error {
			if err := sn.Remove(ctx, name); err != nil && !errdefs.IsNotFound(err) {
				return err
			}
			return nil
		})
	}
	return nil
}
