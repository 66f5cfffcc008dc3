package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// What containers may write to outside their own file systems and volumes (hosts, hostname, resolv.conf, and the
// kubelet's files for termination messages) lies on a tmpfs of the pod's own: its size bounds what they can write, and
// its pages count as memory of the container that wrote them. It is mounted on the sandbox's directory, ahead of the
// pod.

// scratchSize is how large the tmpfs of a sandbox is, in bytes, if what is put there at first is not larger.
const scratchSize = 128 << 10

const scratchFlags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC

// mountTmpfs mounts the tmpfs of a sandbox on its directory and makes the directories in it.
func mountTmpfs(dir string) error {
	if err := unix.Mount("sandbox", dir, "tmpfs", scratchFlags, fmt.Sprintf("mode=711,size=%d", scratchSize)); err != nil {
		return fmt.Errorf("containerd: tmpfs of a sandbox: %w", err)
	}
	for name, mode := range map[string]os.FileMode{"shm": 0o711, "scratch": 0o755} {
		if err := os.Mkdir(filepath.Join(dir, name), mode); err != nil {
			return fmt.Errorf("containerd: %w", err)
		}
	}
	return nil
}

// unmountAll unmounts all there is in a sandbox's directory. What is still there after the first unmount was made by
// an earlier version, which mounted each of them by itself.
func unmountAll(dir string) error {
	if err := Unmount(dir); err != nil {
		return err
	}
	left, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("containerd: %w", err)
	}
	var errs []error
	for _, e := range left {
		errs = append(errs, Unmount(filepath.Join(dir, e.Name())))
	}
	return errors.Join(errs...)
}

// GrowScratch makes room for files of that size in all, should the usual be too little: some machines' /etc/hosts is
// long.
func (p *Pool) GrowScratch(id string, size int) error {
	if size <= scratchSize/2 {
		return nil
	}
	if err := unix.Mount("sandbox", p.Dir(id), "tmpfs", scratchFlags|unix.MS_REMOUNT, fmt.Sprintf("size=%d", size+scratchSize)); err != nil {
		return fmt.Errorf("containerd: tmpfs of a sandbox: %w", err)
	}
	return nil
}

// ScratchDir is where a sandbox's small files are; empty for one of an earlier version, which had no such directory.
func (p *Pool) ScratchDir(id string) string {
	dir := filepath.Join(p.Dir(id), "scratch")
	if _, err := os.Stat(dir); err != nil {
		return ""
	}
	return dir
}
