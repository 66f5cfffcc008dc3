package containerd

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containerd/containerd/errdefs"
	"github.com/containerd/containerd/mount"

	"minik8s/internal/kubelet/cgroup"
	"minik8s/internal/kubelet/cri"
)

// measured is what of one is to be read, and was.
type measured struct {
	cri.Stats
	rest bool   // its Usage.Rest, too
	link string // of a pod as a whole that has a network: the host's end
	pid  uint32 // a process there
	ok   bool   // it was there
}

// Stats implements cri.Runtime. It reads cgroups directly: asking containerd for each takes longer than all of it here. Whoever asks
// waits for hundreds of files, so they are read on all processors.
func (r *Runtime) Stats(ctx context.Context, rest func(string) bool) ([]cri.Stats, error) {
	now := time.Now()
	var all []measured
	pods := map[string]bool{}
	for _, c := range r.containers.All() {
		seen := c.Report()
		if seen.State != cri.Running {
			continue
		}
		if !pods[seen.PodUID] {
			pods[seen.PodUID] = true
			whole := measured{Stats: cri.Stats{PodUID: seen.PodUID, Cgroup: path.Dir(c.Meta.Cgroup)}}
			if rec := r.records.get(seen.PodUID); rec != nil {
				whole.Started = rec.CreatedAt
				if !rec.Config.HostNetwork {
					whole.link, whole.pid = r.net.LinkName(rec.Sandbox.ID), seen.Pid
				}
			}
			all = append(all, whole)
		}
		if seen.Name == pauseName {
			continue
		}
		all = append(all, measured{rest: rest != nil && rest(c.Meta.Cgroup), Stats: cri.Stats{PodUID: seen.PodUID, Container: seen.Name,
			ContainerID: seen.ID, Cgroup: c.Meta.Cgroup, Started: seen.StartedAt}})
	}
	traffic := r.traffic.look(now)
	defer traffic.end()
	var next atomic.Int64
	var readers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), 1+len(all)/alone) {
		readers.Go(func() {
			reader := r.usage.Reader()
			for i := int(next.Add(1)) - 1; i < len(all) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				read(reader, traffic, &all[i])
			}
		})
	}
	readers.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := make([]cri.Stats, 0, len(all))
	for i := range all {
		if all[i].ok {
			out = append(out, all[i].Stats)
		}
	}
	return out, nil
}

// alone is how many cgroups are not worth a further processor.
const alone = 32

func read(reader *cgroup.Reader, traffic *links, m *measured) {
	// Each has its own time: on a busy machine hundreds of files take a while, and rates would be wrong by that.
	m.Time = time.Now()
	m.ok = m.rest && reader.Read(m.Cgroup, &m.Usage) || !m.rest && reader.ReadCore(m.Cgroup, &m.Usage) // or it has just ended
	if m.ok && m.link != "" {
		m.Network = traffic.of(m.link, m.pid)
	}
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
