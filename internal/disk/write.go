package disk

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// WriteFile replaces the file at path by one with this content and mode. When it returns nil the content is on the
// disk under that name; if it fails, or the power fails, either the old file or the new one is there.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	return Create(path, mode, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Create is WriteFile for content that fill writes.
func Create(path string, mode fs.FileMode, fill func(io.Writer) error) error {
	if err := replace(path, mode, fill, (*os.File).Sync); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path)) // the file's name is part of the directory's content
}

// Publish replaces the file at path atomically for readers and for later processes, without waiting for the disk:
// after a power failure its content is undefined.
func Publish(path string, data []byte, mode fs.FileMode) error {
	return PublishFrom(path, bytes.NewReader(data), mode)
}

// PublishFrom is Publish of what can be read from r.
func PublishFrom(path string, r io.Reader, mode fs.FileMode) error {
	return replace(path, mode, func(w io.Writer) error {
		_, err := io.Copy(w, r)
		return err
	}, func(*os.File) error { return nil })
}

// Sync waits until the content of one file is on the disk (fsync).
func Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

func replace(path string, mode fs.FileMode, fill func(io.Writer) error, settle func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	err = fill(f)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = settle(f)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// SyncDir waits until the names in a directory are on the disk.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	// Some file systems cannot sync a directory, and need not.
	if err := d.Sync(); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
		return err
	}
	return nil
}

// SyncAll waits until everything written to path's file system is on the disk (syncfs). For trees of files it is
// cheaper than syncing each.
func SyncAll(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}
