package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The files that containers may write outside their own file systems and volumes (hosts, hostname, resolv.conf, and
// the kubelet's files for termination messages) are on a tmpfs per pod: its size bounds what they can write, and its
// pages count as memory of the container that wrote them. It is mounted on the sandbox's directory, before the pod
// exists.

// scratchSize is the size of a sandbox's tmpfs in bytes, unless its initial files are larger.
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

// unmountAll unmounts everything in a sandbox's directory. Mounts that are left after the first unmount are of an
// earlier version, which made each mount separately.
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

// GrowScratch enlarges the tmpfs for files of that size in all, in bytes, if they would not fit: some machines'
// /etc/hosts is long.
func (p *Pool) GrowScratch(id string, size int) error {
	if size <= scratchSize/2 {
		return nil
	}
	if err := unix.Mount("sandbox", p.Dir(id), "tmpfs", scratchFlags|unix.MS_REMOUNT, fmt.Sprintf("size=%d", size+scratchSize)); err != nil {
		return fmt.Errorf("containerd: tmpfs of a sandbox: %w", err)
	}
	return nil
}

// ScratchDir is the directory of a sandbox's small files; empty for a sandbox of an earlier version without one.
func (p *Pool) ScratchDir(id string) string {
	dir := filepath.Join(p.Dir(id), "scratch")
	if _, err := os.Stat(dir); err != nil {
		return ""
	}
	return dir
}
