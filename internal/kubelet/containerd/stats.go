package containerd

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/containerd/containerd/errdefs"
	"github.com/containerd/containerd/mount"

	"minik8s/internal/kubelet/cri"
)

// Stats implements cri.Runtime. It reads cgroups directly: asking containerd for each takes longer than all of it here.
func (r *Runtime) Stats(ctx context.Context, rest func(string) bool) ([]cri.Stats, error) {
	reader := r.usage.Reader()
	now := time.Now()
	var out []cri.Stats
	pods := map[string]bool{}
	traffic := r.traffic.look(now)
	defer traffic.end()
	for _, c := range r.containers.All() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		seen := c.Report()
		if seen.State != cri.Running {
			continue
		}
		if !pods[seen.PodUID] {
			pods[seen.PodUID] = true
			whole := cri.Stats{PodUID: seen.PodUID, Cgroup: path.Dir(c.Meta.Cgroup), Time: now}
			rec := r.records.get(seen.PodUID)
			if rec != nil {
				whole.Started = rec.CreatedAt
			}
			if reader.ReadCore(whole.Cgroup, &whole.Usage) {
				if rec != nil && !rec.Config.HostNetwork {
					whole.Network = traffic.of(r.net.LinkName(rec.Sandbox.ID), seen.Pid)
				}
				out = append(out, whole)
			}
		}
		if seen.Name == pauseName {
			continue
		}
		s := cri.Stats{PodUID: seen.PodUID, Container: seen.Name, ContainerID: seen.ID, Cgroup: c.Meta.Cgroup, Started: seen.StartedAt, Time: now}
		read := reader.ReadCore
		if rest != nil && rest(s.Cgroup) {
			read = reader.Read
		}
		if read(s.Cgroup, &s.Usage) { // or it has just ended
			out = append(out, s)
		}
	}
	return out, nil
}

// Files implements cri.Runtime.
func (r *Runtime) Files(ctx context.Context) ([]cri.Files, error) {
	sn := r.client.SnapshotService(r.containerd.Snapshotter)
	var out []cri.Files
	for _, c := range r.containers.All() {
		seen := c.Report()
		if seen.State != cri.Running || seen.Name == pauseName {
			continue
		}
		f := cri.Files{PodUID: seen.PodUID, ContainerID: seen.ID}
		if seen.LogPath != "" {
			f.Log = filepath.Dir(seen.LogPath)
		}
		mounts, err := sn.Mounts(r.ns(ctx), seen.ID)
		if err != nil && !errdefs.IsNotFound(err) { // it has just ended
			return nil, fmt.Errorf("containerd: root file system: %w", err)
		}
		f.Layer = written(mounts)
		out = append(out, f)
	}
	return out, nil
}

// written is the directory of a root file system that changes are in: overlayfs' upper one, or with the snapshotter native,
// which copies, all of it.
func written(mounts []mount.Mount) string {
	if len(mounts) != 1 {
		return ""
	}
	for _, o := range mounts[0].Options {
		if dir, ok := strings.CutPrefix(o, "upperdir="); ok {
			return dir
		}
	}
	if mounts[0].Type == "overlay" {
		return "" // nothing can be written
	}
	return mounts[0].Source
}
