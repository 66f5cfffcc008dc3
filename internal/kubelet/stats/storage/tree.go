package storage

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Use is what files take: bytes on disk, as in du, and inodes, directories included.
type Use struct{ Bytes, Inodes uint64 }

// maxDepth bounds the directories that are open at once.
const maxDepth = 128

// block is the unit of stat's st_blocks, whatever the file system's is.
const block = 512

// Tree returns what a directory and all below it take. Files and directories that vanish meanwhile are no error; there
// being no such directory is fs.ErrNotExist.
func Tree(ctx context.Context, dir string) (Use, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return Use{}, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd) //nolint:errcheck // it was only read
		return Use{}, &fs.PathError{Op: "stat", Path: dir, Err: err}
	}
	w := walk{ctx: ctx, device: st.Dev}
	w.add(&st)
	if err := w.directory(fd, 1); err != nil {
		return Use{}, err
	}
	return Use{Bytes: uint64(w.bytes + 0.5), Inodes: uint64(w.inodes + 0.5)}, nil
}

// walk is the sum so far. Each name of a file counts for its part: so the sum needs no memory of which were seen.
type walk struct {
	ctx           context.Context
	device        uint64
	bytes, inodes float64
}

func (w *walk) add(st *unix.Stat_t) {
	names := 1.0
	if st.Mode&unix.S_IFMT != unix.S_IFDIR && st.Nlink > 1 {
		names = float64(st.Nlink)
	}
	w.bytes += float64(st.Blocks*block) / names
	w.inodes += 1 / names
}

// directory adds what is in a directory, and closes it. The error is ctx's: a directory that cannot be read, or not any more,
// has nothing.
func (w *walk) directory(fd, depth int) error {
	dir := os.NewFile(uintptr(fd), "")
	defer dir.Close() //nolint:errcheck // it was only read
	for {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		names, err := dir.Readdirnames(256)
		if err != nil { // the end, or it was removed
			return nil
		}
		for _, name := range names {
			if err := w.entry(fd, name, depth); err != nil {
				return err
			}
		}
	}
}

func (w *walk) entry(parent int, name string, depth int) error {
	var st unix.Stat_t
	if err := unix.Fstatat(parent, name, &st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT); err != nil || st.Dev != w.device {
		return nil
	}
	w.add(&st)
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || depth == maxDepth {
		return nil
	}
	fd, err := unix.Openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	return w.directory(fd, depth+1)
}

// gone reports whether an error of Tree means that there is nothing to measure.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}
