package containerd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// What containers may write to outside their own file systems and volumes (hosts, hostname, resolv.conf, and
// the kubelet's files for termination messages) lies on a tmpfs of the pod's own. It is full before it
// hurts anybody, its pages count as memory of the container that wrote them, and it is mounted with the slot,
// ahead of the pod.

// scratchSize is how large the tmpfs of a slot is, in bytes, if what is put there at first is not larger.
const scratchSize = 128 << 10

const scratchFlags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC

// mountSlot mounts the tmpfs of a slot on its directory and makes the directories in it.
func mountSlot(dir string) error {
	if err := unix.Mount("slot", dir, "tmpfs", scratchFlags, fmt.Sprintf("mode=711,size=%d", scratchSize)); err != nil {
		return fmt.Errorf("containerd: tmpfs of a slot: %w", err)
	}
	for name, mode := range map[string]os.FileMode{"shm": 0o711, "scratch": 0o755} {
		if err := os.Mkdir(filepath.Join(dir, name), mode); err != nil {
			return fmt.Errorf("containerd: %w", err)
		}
	}
	return nil
}

// unmountSlot unmounts all there is in a slot's directory. What is still there after the first unmount was mounted
// beside the tmpfs, by a daemon before this one.
func unmountSlot(dir string) error {
	if err := unmount(dir); err != nil {
		return err
	}
	left, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("containerd: %w", err)
	}
	var errs []error
	for _, e := range left {
		errs = append(errs, unmount(filepath.Join(dir, e.Name())))
	}
	return errors.Join(errs...)
}

// growScratch makes room for files of that size in all, should the usual be too little: the /etc/hosts of some
// hosts has a line for every site they know.
func growScratch(dir string, size int) error {
	if size <= scratchSize/2 {
		return nil
	}
	if err := unix.Mount("slot", filepath.Dir(dir), "tmpfs", scratchFlags|unix.MS_REMOUNT, fmt.Sprintf("size=%d", size+scratchSize)); err != nil {
		return fmt.Errorf("containerd: tmpfs of a slot: %w", err)
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
