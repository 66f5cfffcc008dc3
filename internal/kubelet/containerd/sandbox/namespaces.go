package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// nsfsMagic is the file system type of a namespace's file.
const nsfsMagic = 0x6e736673

// namespaceFlags are the kinds a sandbox can pin, by the name of their file.
var namespaceFlags = map[string]int{"net": unix.CLONE_NEWNET, "uts": unix.CLONE_NEWUTS, "ipc": unix.CLONE_NEWIPC}

// onThread runs f on a thread of its own that ends with f, so no other goroutine ever runs in a namespace that f has
// entered. Goroutines that f starts do not run on that thread.
func onThread(f func() error) error {
	done := make(chan error, 1)
	var run func()
	run = func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The main thread cannot end, and /proc/self would show its namespaces as the
			// process's. It waits here, locked, while another one does the work.
			defer runtime.UnlockOSThread()
			again := make(chan struct{})
			go func() { defer close(again); run() }()
			<-again
			return
		}
		// Ending while locked ends the thread.
		done <- f()
	}
	go run()
	return <-done
}

// makeNamespaces makes namespaces of these kinds, pins them by bind mounts in dir, and runs inside
// on a thread that is in them.
func makeNamespaces(dir string, kinds []string, inside func() error) error {
	flags := 0
	for _, k := range kinds {
		if err := os.WriteFile(filepath.Join(dir, k), nil, 0o600); err != nil {
			return fmt.Errorf("containerd: %w", err)
		}
		flags |= namespaceFlags[k]
	}
	return onThread(func() error {
		if err := unix.Unshare(flags); err != nil {
			return fmt.Errorf("containerd: new namespaces: %w", err)
		}
		for _, k := range kinds {
			if err := unix.Mount("/proc/thread-self/ns/"+k, filepath.Join(dir, k), "", unix.MS_BIND, ""); err != nil {
				return fmt.Errorf("containerd: pin the %s namespace: %w", k, err)
			}
		}
		return inside()
	})
}

// inNamespaces runs f on a thread in those of the namespaces that are pinned in dir.
func inNamespaces(dir string, kinds []string, f func() error) error {
	return onThread(func() error {
		for _, k := range kinds {
			fd, err := unix.Open(filepath.Join(dir, k), unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return fmt.Errorf("containerd: %s namespace: %w", k, err)
			}
			err = unix.Setns(fd, namespaceFlags[k])
			unix.Close(fd)
			if err != nil {
				return fmt.Errorf("containerd: enter the %s namespace: %w", k, err)
			}
		}
		return f()
	})
}

// isPinned reports whether path is a namespace's file, and not the empty one that is left after a reboot.
func isPinned(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && st.Type == nsfsMagic
}

// Unmount detaches all mounts at path. It is not an error if there are none.
func Unmount(path string) error {
	for range 16 {
		switch err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); {
		case err == nil:
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
			return nil
		default:
			return fmt.Errorf("containerd: unmount %s: %w", path, err)
		}
	}
	return nil
}
