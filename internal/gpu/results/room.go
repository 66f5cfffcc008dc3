package results

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The disk is the one under etcd and containers, too. So results leave some of it free: reservePart of the disk, but at least
// reserveLeast bytes, though on a tiny disk not more than reserveMost of it.
const (
	reservePart  = 20
	reserveLeast = 1 << 30
	reserveMost  = 4
)

// FullError is a disk without room for a job's files. All are bytes.
type FullError struct {
	Need    int64 // what is still to come
	Free    int64 // what is free, and promised to no other job
	Reserve int64 // what of it stays so
}

func (e *FullError) Error() string {
	return fmt.Sprintf("%s are still to come, and the disk has %s free, of which %s stay so", size(e.Need), size(e.Free), size(e.Reserve))
}

// Full reports whether an error means that the disk, or a quota of it, is used up.
func Full(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// Room is space on the disk that is promised to a job's files.
type Room struct {
	s    *Store
	left map[string]int64 // by file
}

// Room promises a job the space for what of its files has not come yet. The error is a *FullError if there is too little. The caller
// gives back what is not used.
func (s *Store) Room(uid string, files []File) (*Room, error) {
	dir, err := s.of(uid)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &Room{s: s, left: make(map[string]int64, len(files))}
	need := int64(0)
	for _, f := range files {
		r.left[f.Path] = f.Size - min(f.Size, have(dir, f.Path))
		need += r.left[f.Path]
	}
	full, err := s.measure(need)
	if err != nil {
		return nil, err
	}
	for other := range s.rooms {
		for _, n := range other.left {
			full.Free -= n
		}
	}
	full.Free = max(full.Free, 0)
	if need > 0 && need > full.Free-full.Reserve {
		return nil, full
	}
	s.rooms[r] = true
	return r, nil
}

// NoRoom describes the disk after a write of some bytes has found it full.
func (s *Store) NoRoom(need int64) error {
	full, err := s.measure(need)
	if err != nil {
		return err
	}
	return full
}

// measure is how much of the disk there is for need bytes.
func (s *Store) measure(need int64) (*FullError, error) {
	at := s.dir
	for { // the folder itself may not have been made yet
		_, err := os.Stat(at)
		if err == nil || !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			break
		}
		at = filepath.Dir(at)
	}
	free, all, err := s.space(at)
	if err != nil {
		return nil, fmt.Errorf("the free space for results: %w", err)
	}
	return &FullError{Need: need, Free: free, Reserve: min(max(all/reservePart, reserveLeast), all/reserveMost)}, nil
}

// Used says that a file has come: its space is counted as used now, and no longer as promised.
func (r *Room) Used(name string) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	delete(r.left, name)
}

// GiveBack ends the promise.
func (r *Room) GiveBack() {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	delete(r.s.rooms, r)
}

// have is how much of a file has come.
func have(dir, name string) int64 {
	for _, at := range []string{partDir, filesDir} {
		if info, err := os.Lstat(filepath.Join(dir, at, filepath.FromSlash(name))); err == nil && info.Mode().IsRegular() {
			return info.Size()
		}
	}
	return 0
}

func space(dir string) (free, size int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", dir, err)
	}
	return int64(st.Bavail) * st.Bsize, int64(st.Blocks) * st.Bsize, nil
}

// size is a number of bytes for people.
func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d bytes", n)
}
