package storage

import (
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// FileSystem is how full a file system is, in bytes and inodes.
type FileSystem struct {
	// Device, Type and MountPoint are as in /proc/self/mounts; empty where they were not looked up.
	Device, Type, MountPoint string
	Time                     time.Time
	// Free is what root could still write, Available what others can.
	Capacity, Free, Available uint64
	Inodes, InodesFree        uint64
	ReadOnly, InMemory        bool
}

// Used is how much of it is taken.
func (f *FileSystem) Used() uint64 { return f.Capacity - min(f.Free, f.Capacity) }

// Of returns the file system that a directory is on.
func Of(dir string) (FileSystem, error) {
	out := FileSystem{Time: time.Now()}
	if err := out.fill(dir); err != nil {
		return out, err
	}
	// The mount with the longest path that leads to it, the last of these, is the one.
	mounts, err := procfs.GetMounts()
	if err != nil {
		return out, nil
	}
	for _, m := range mounts {
		if len(m.MountPoint) >= len(out.MountPoint) && (m.MountPoint == "/" || dir == m.MountPoint || strings.HasPrefix(dir, m.MountPoint+"/")) {
			out.Device, out.Type, out.MountPoint = m.Source, m.FSType, m.MountPoint
		}
	}
	return out, nil
}

func (f *FileSystem) fill(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return err
	}
	size := uint64(st.Bsize)
	f.Capacity, f.Free, f.Available = st.Blocks*size, st.Bfree*size, st.Bavail*size
	f.Inodes, f.InodesFree = st.Files, st.Ffree
	f.ReadOnly, f.InMemory = st.Flags&unix.ST_RDONLY != 0, st.Type == unix.TMPFS_MAGIC
	return nil
}

// Mounted are the machine's file systems with a device, or in memory; the mounts of pods are left out, as by node-exporter's
// default.
func Mounted() []FileSystem {
	mounts, err := procfs.GetMounts()
	if err != nil {
		return nil
	}
	var out []FileSystem
	seen := map[string]bool{}
	for _, m := range mounts {
		disk := strings.HasPrefix(m.Source, "/dev/") || m.FSType == "tmpfs" || m.FSType == "overlay" && m.MountPoint == "/"
		if !disk || seen[m.MountPoint] || strings.HasPrefix(m.MountPoint, "/dev") || strings.HasPrefix(m.MountPoint, "/proc") ||
			strings.HasPrefix(m.MountPoint, "/sys") || strings.Contains(m.MountPoint, "/pods/") || strings.Contains(m.MountPoint, "/slots/") ||
			strings.Contains(m.MountPoint, "/containers/") {
			continue
		}
		seen[m.MountPoint] = true
		x := FileSystem{Device: m.Source, Type: m.FSType, MountPoint: m.MountPoint, Time: time.Now()}
		if x.fill(m.MountPoint) == nil {
			out = append(out, x)
		}
	}
	return out
}
