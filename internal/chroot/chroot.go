package chroot

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Leave returns at once if this program is in no chroot, or cannot find out. Else it starts the program
// again and returns only if that fails. earlier, which may be nil, returns the processes that an earlier run has left: if one
// of them lives, the program enters its mount namespace, and finds the mounts of that run.
func Leave(earlier func() []int) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlock it: this thread's root is its own from here on, and it ends with the goroutine
		done <- leave(earlier)
	}()
	return <-done
}

func leave(earlier func() []int) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		dir = "/"
	}
	// Until it is known that this is a chroot no error counts: who lacks the rights, or a kernel's feature, is told so when the
	// first container starts.
	if unix.Unshare(unix.CLONE_FS) != nil {
		return nil
	}
	chroot, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(chroot) //nolint:errcheck // it was not written
	own, err := unix.Open("/proc/thread-self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(own) //nolint:errcheck // it was not written
	inside, err := root()
	if err != nil || unix.Setns(own, unix.CLONE_NEWNS) != nil { // entering the namespace that it is in leads to its root
		return nil
	}
	outside, err := root()
	if err != nil || inside == outside {
		return nil
	}
	var pids []int
	if earlier != nil {
		if pids, err = within(chroot, own, earlier); err != nil {
			return err
		}
	}
	if !join(chroot, own, inside, pids) {
		err = move(chroot)
	}
	if err != nil {
		return fmt.Errorf("containers cannot be entered in a chroot, and this one cannot be left: %w", err)
	}
	if err := unix.Chdir(dir); err != nil {
		return os.NewSyscallError("chdir", err)
	}
	return os.NewSyscallError("exec", unix.Exec(program, os.Args, os.Environ()))
}

// directory tells directories apart, also one that is mounted in two places.
type directory struct {
	mount, inode uint64
	major, minor uint32
}

// root is this thread's root directory.
func root() (directory, error) {
	var s unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, "/", 0, unix.STATX_INO|unix.STATX_MNT_ID, &s)
	return directory{s.Mnt_id, s.Ino, s.Dev_major, s.Dev_minor}, os.NewSyscallError("statx", err)
}

// within calls a function with the chroot's paths, from outside of it.
func within(chroot, own int, f func() []int) ([]int, error) {
	if err := unix.Fchdir(chroot); err != nil {
		return nil, os.NewSyscallError("fchdir", err)
	}
	if err := unix.Chroot("."); err != nil {
		return nil, os.NewSyscallError("chroot", err)
	}
	pids := f()
	return pids, os.NewSyscallError("setns", unix.Setns(own, unix.CLONE_NEWNS))
}

// join has this thread enter the mount namespace of one of these processes, if its root is the chroot's directory. If none fits
// the thread is in its own namespace.
func join(chroot, own int, want directory, pids []int) bool {
	for _, pid := range pids {
		other, err := unix.Openat(chroot, fmt.Sprintf("proc/%d/ns/mnt", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // it has ended
		}
		err = unix.Setns(other, unix.CLONE_NEWNS)
		unix.Close(other) //nolint:errcheck // it was not written
		if err != nil {
			continue
		}
		got, err := root()
		got.mount = want.mount // which is another one there
		if err == nil && got == want {
			return true
		}
		unix.Setns(own, unix.CLONE_NEWNS) //nolint:errcheck // it was possible before, and else move says what is wrong
	}
	return false
}

// move has this thread enter a new mount namespace that consists of a directory and what is mounted below it.
func move(dir int) error {
	tree, err := unix.OpenTree(dir, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return os.NewSyscallError("open_tree", err)
	}
	defer unix.Close(tree) //nolint:errcheck // it was not written
	// Mounts of before are slaves: what is done to them in here is not done outside.
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"unshare", func() error { return unix.Unshare(unix.CLONE_NEWNS) }},
		{"mount", func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, "") }},
		{"move_mount", func() error { return unix.MoveMount(tree, "", unix.AT_FDCWD, "/", unix.MOVE_MOUNT_F_EMPTY_PATH) }},
		{"fchdir", func() error { return unix.Fchdir(tree) }},
		{"mount", func() error { return unix.Mount("", ".", "", unix.MS_REC|unix.MS_SLAVE, "") }},
		{"pivot_root", func() error { return unix.PivotRoot(".", ".") }},
		{"umount", func() error { return unix.Unmount(".", unix.MNT_DETACH) }}, // the root of before, which is on top now
	} {
		if err := step.do(); err != nil {
			return os.NewSyscallError(step.name, err)
		}
	}
	return nil
}
