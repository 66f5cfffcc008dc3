package summary

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"minik8s/internal/kubelet/stats/storage"
)

// fileSystem says how full a file system is, but not what of it is used.
func fileSystem(f *storage.FileSystem) *statsapi.FsStats {
	return &statsapi.FsStats{Time: metav1.NewTime(f.Time), AvailableBytes: &f.Available, CapacityBytes: &f.Capacity, InodesFree: &f.InodesFree,
		Inodes: &f.Inodes, InodesUsed: new(f.Inodes - min(f.InodesFree, f.Inodes))}
}

// use says what something takes of a file system.
func use(f *storage.FileSystem, u storage.Use) *statsapi.FsStats {
	out := fileSystem(f)
	out.UsedBytes, out.InodesUsed = &u.Bytes, &u.Inodes
	return out
}

func volumes(disk *storage.Reading, uid string) []statsapi.VolumeStats {
	var out []statsapi.VolumeStats
	for i := range disk.Volumes[uid] {
		v := &disk.Volumes[uid][i]
		out = append(out, statsapi.VolumeStats{Name: v.Name, FsStats: *use(&v.FileSystem, v.Use)})
	}
	slices.SortFunc(out, func(a, b statsapi.VolumeStats) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// ephemeral is what a pod takes of the node's disk, as the kubelet's eviction counts it: its containers' layers and logs, and
// its volumes, but those in memory. It is nil unless all of that is known.
func ephemeral(disk *storage.Reading, uid string, containers []statsapi.ContainerStats) *statsapi.FsStats {
	if disk.Partly[uid] || slices.ContainsFunc(containers, func(c statsapi.ContainerStats) bool { return c.Rootfs == nil }) {
		return nil
	}
	var sum storage.Use
	for _, c := range containers {
		for _, f := range []*statsapi.FsStats{c.Rootfs, c.Logs} {
			sum.Bytes += *f.UsedBytes
			sum.Inodes += *f.InodesUsed
		}
	}
	for _, v := range disk.Volumes[uid] {
		if !v.FileSystem.InMemory {
			sum.Bytes += v.Bytes
			sum.Inodes += v.Inodes
		}
	}
	return use(&disk.Data, sum)
}
