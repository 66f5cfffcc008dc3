package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// bindSubPath binds what sub names inside volume to the path at, and returns at. A container that writes to the
// volume may put links into it while we look, so the path is opened with an os.Root, which never leaves the volume,
// and the opened file, not its name, is bound.
func bindSubPath(volume, sub, at string) (string, error) {
	if filepath.IsAbs(sub) || !filepath.IsLocal(sub) {
		return "", fmt.Errorf("a subPath must be a relative path without %q", "..")
	}
	root, err := os.OpenRoot(volume)
	if err != nil {
		return "", err
	}
	defer root.Close()
	f, err := openOrMake(root, sub)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if err := unbind(at); err != nil {
		return "", err
	}
	if err := makeTarget(at, info.IsDir()); err != nil {
		return "", err
	}
	source := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	if err := unix.Mount(source, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return "", fmt.Errorf("binding: %w", err)
	}
	return at, nil
}

// openOrMake opens sub, making it a directory like the volume itself if nothing is there.
func openOrMake(root *os.Root, sub string) (*os.File, error) {
	f, err := openInside(root, sub)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	info, err := root.Stat(".")
	if err != nil {
		return nil, err
	}
	mode := info.Mode().Perm()
	if err := root.MkdirAll(sub, mode); err != nil {
		return nil, err
	}
	if err := root.Chmod(sub, mode); err != nil { // mkdir's mode is cut by the umask
		return nil, err
	}
	return openInside(root, sub)
}

// openInside opens sub with O_PATH, which does not read and does not follow a link at its end. A link is then opened
// for reading instead, which follows links that stay inside.
func openInside(root *os.Root, sub string) (*os.File, error) {
	f, err := root.OpenFile(sub, unix.O_PATH, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Mode()&fs.ModeSymlink == 0 {
		return f, nil
	}
	f.Close()
	if err != nil {
		return nil, err
	}
	return root.OpenFile(sub, unix.O_RDONLY|unix.O_NONBLOCK, 0)
}

func makeTarget(at string, dir bool) error {
	if err := os.MkdirAll(filepath.Dir(at), 0o750); err != nil {
		return err
	}
	if dir {
		return os.Mkdir(at, 0o750)
	}
	f, err := os.OpenFile(at, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	return f.Close()
}

// unbind undoes an earlier bind at the same place.
func unbind(at string) error {
	if _, err := os.Lstat(at); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for {
		mounted, err := isMounted(at)
		if err != nil {
			return err
		}
		if !mounted {
			break
		}
		if err := unix.Unmount(at, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("unmounting %s: %w", at, err)
		}
	}
	return os.Remove(at)
}
