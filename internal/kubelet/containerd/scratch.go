package containerd

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// What containers may write to outside their own file systems and volumes (hosts, hostname, resolv.conf, and
// the kubelet's files for termination messages) lies on a tmpfs of the pod's own. It is full before it
// hurts anybody, its pages count as memory of the container that wrote them, and it is mounted with the slot,
// ahead of the pod.

// scratchSize is how large a scratch directory is, in bytes, if what is put there at first is not larger.
const scratchSize = 128 << 10

const scratchFlags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC

func mountScratch(dir string) error {
	if err := unix.Mount("scratch", dir, "tmpfs", scratchFlags, fmt.Sprintf("mode=755,size=%d", scratchSize)); err != nil {
		return fmt.Errorf("containerd: scratch directory: %w", err)
	}
	return nil
}

// growScratch makes room for files of that size in all, should the usual be too little: the /etc/hosts of some
// hosts has a line for every site they know.
func growScratch(dir string, size int) error {
	if size <= scratchSize/2 {
		return nil
	}
	if err := unix.Mount("scratch", dir, "tmpfs", scratchFlags|unix.MS_REMOUNT, fmt.Sprintf("size=%d", size+scratchSize)); err != nil {
		return fmt.Errorf("containerd: scratch directory: %w", err)
	}
	return nil
}

// scratchDir is where a sandbox's small files are. Those of a daemon before this one lie beside the record.
func (r *Runtime) scratchDir(rec *record) string {
	dir := filepath.Join(r.slotDir(rec.Slot.ID), "scratch")
	if _, err := os.Stat(dir); err != nil {
		return r.sandboxDir(rec.Config.PodUID)
	}
	return dir
}
