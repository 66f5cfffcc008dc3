package etcd

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/server/v3/storage/backend"
	"golang.org/x/sys/unix"

	"minik8s/internal/store"
)

// A full disk must not reach etcd: it ends the process when it cannot write to its log or its file. So
// writes are refused while there is still room, and room is kept that is already allocated, which
// nobody else on the disk can take: the file's next pages, the log's next segment but one, and a reserve
// that is given up for the rest, a start on a full disk above all.

const (
	// lookEvery is how long an answer about free space holds while there are writes; without them nobody asks.
	lookEvery = 20 * time.Millisecond
	// smallDisk is one on which all amounts are a quarter.
	smallDisk = 1 << 30
	// segmentSize of etcd's log, on a disk that is not small.
	segmentSize = 16 << 20
)

// room is how much space there is.
type room int32

const (
	plenty room = iota
	low         // only what frees space, or keeps the cluster alive, is written
	scarce      // and of that no more than has been allocated before
)

// space watches the disk under etcd.
type space struct {
	dir string
	log *slog.Logger
	// low is below floor bytes free, scarce below hard. headroom is what is allocated beyond the end of the
	// file, reserve what is given up when space is scarce, and at least a segment of it if there is no room for more;
	// segment is a part of the log, allowance what may be written while space is scarce.
	floor, hard, headroom, reserve, segment, allowance int64

	began        time.Time
	next, nextAt atomic.Int64 // when to look again, after began, and after how many bytes
	edge         atomic.Bool  // somebody is finding out whether there is room
	room         atomic.Int32
	left         atomic.Int64    // of the allowance
	mu           sync.Mutex      // of all below
	allocated    int64           // bytes of the file that have their blocks
	reserved     int64           // bytes of the reserve that have theirs
	file         backend.Backend // nil until it is open
	// admitted counts bytes; marks are what it was a while ago.
	admitted atomic.Int64
	marks    [2]mark
	// short wakes housekeeping.
	short func()
}

type mark struct{ at, total int64 }

// window is more than a batch of writes waits before it is in the file.
const window = 2 * batchInterval

// newSpace measures the disk and gives up the reserve if etcd could not start otherwise.
func newSpace(dir string, log *slog.Logger) (*space, error) {
	var st unix.Statfs_t
	var file unix.Stat_t
	if err := unix.Statfs(dir, &st); err != nil {
		return nil, fmt.Errorf("etcd's directory: %s: %w", dir, err)
	}
	s := &space{dir: dir, log: log, began: time.Now(), segment: segmentSize}
	if int64(st.Blocks)*st.Bsize < smallDisk {
		s.segment /= 4
	}
	s.floor, s.hard = 4*s.segment, s.segment
	s.headroom, s.reserve, s.allowance = s.segment, 2*s.segment, s.segment/2
	// etcd allocates the first name first. Where there is no room that is to be the one with blocks.
	wal := filepath.Join(dir, "member", "wal")
	if _, err := os.Stat(filepath.Join(wal, "0.tmp")); errors.Is(err, fs.ErrNotExist) {
		if err := os.Rename(filepath.Join(wal, "1.tmp"), filepath.Join(wal, "0.tmp")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("etcd's log: %w", err)
		}
	}
	if err := unix.Stat(s.reservePath(), &file); err == nil {
		const block = 512 // the unit of st_blocks, see stat(2)
		s.reserved = file.Blocks * block
	}
	if s.free() >= s.hard {
		return s, nil
	}
	return s, s.clearWay()
}

// clearWay gives up the reserve for a start on a full disk. etcd truncates the log's last segment there and allocates
// it again. Some file systems (ext4) can use blocks again only once it is written down that they are free.
func (s *space) clearWay() error {
	if err := s.giveUpReserve(); err != nil {
		return err
	}
	d, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return unix.Syncfs(int(d.Fd()))
}

// admit says whether n bytes may be written. Reading the clock is all it costs as a rule.
func (s *space) admit(n int, essential bool) error {
	if now := int64(time.Since(s.began)); now >= s.next.Load() || s.admitted.Load() >= s.nextAt.Load() {
		s.look(now)
	}
	if s.edge.Load() { // wait until it is known whether there is room
		s.mu.Lock()
		//lint:ignore SA2001 to wait is all that is wanted
		s.mu.Unlock()
	}
	is := room(s.room.Load())
	if is != plenty && !essential || is == scarce && s.left.Add(-int64(n)) < 0 {
		return store.ErrNoSpace
	}
	s.admitted.Add(int64(n))
	return nil
}

// look asks the disk, unless somebody else does.
func (s *space) look(now int64) {
	if !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	s.next.Store(now + int64(lookEvery))
	s.nextAt.Store(s.admitted.Load() + s.segment/8)
	if s.file == nil {
		return
	}
	was := room(s.room.Load())
	is, free := s.judge(was, s.pending(now))
	if is != plenty && was == plenty {
		// It may only be that what was admitted is not in the file yet. Then it is, and has its blocks, before
		// anybody else can take them.
		s.edge.Store(true)
		s.file.ForceCommit()
		s.settled(now)
		is, free = s.judge(was, 0)
		s.edge.Store(false)
	}
	if err := s.allocate(is != was); err != nil {
		s.log.Warn("no reserve for a full disk could be made", "error", err)
	}
	if is == plenty && was != plenty && s.reserved < s.segment {
		is = low // or the next start on a full disk might fail
	}
	if is == scarce && was != scarce {
		s.left.Store(s.allowance)
		if err := s.giveUpReserve(); err != nil {
			s.log.Error("the reserve for a full disk could not be given up", "error", err)
		}
	}
	if is == was {
		return
	}
	s.room.Store(int32(is))
	switch {
	case is == plenty:
		s.log.Info("the disk has room again: everything is written", "free", free)
	case was == plenty:
		s.log.Error("the disk is full: new objects and changes are refused until there is room; deleting goes on", "free", free, "needed", s.floor, "dir", s.dir)
		s.short()
	}
}

// judge says how much room there is when pending bytes more are in the file. Its log needs room on the disk, what
// is to go into the file may also find it in pages of the file that are empty.
func (s *space) judge(was room, pending int64) (room, int64) {
	free := s.free()
	inFile := max(0, s.file.Size()-s.file.SizeInUse())
	need := s.floor
	if was != plenty { // not to and fro at the edge
		need += s.segment
	}
	switch {
	case free < s.hard:
		return scarce, free
	case free+inFile-pending < need:
		return low, free
	}
	return plenty, free
}

// pending is how much may have been admitted and not be in the file yet: all of the last batches, and twice, for
// pages are not full.
func (s *space) pending(now int64) int64 {
	total := s.admitted.Load()
	if now-s.marks[1].at > int64(window) {
		s.marks[0], s.marks[1] = s.marks[1], mark{now, total}
	}
	return 2 * (total - s.marks[0].total)
}

// settled says that nothing is pending.
func (s *space) settled(now int64) {
	s.marks[0] = mark{now, s.admitted.Load()}
	s.marks[1] = s.marks[0]
}

// rewritten is called when the file is another, which has no headroom.
func (s *space) rewritten() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allocated = 0
	s.next.Store(0)
	if err := s.allocate(true); err != nil {
		s.log.Warn("no reserve for a full disk could be made", "error", err)
	}
}

// free is what is free of the disk, in bytes; if it does not say, enough.
func (s *space) free() int64 {
	var st unix.Statfs_t
	if err := unix.Statfs(s.dir, &st); err != nil {
		return s.floor
	}
	return int64(st.Bavail) * st.Bsize
}

func (s *space) reservePath() string { return filepath.Join(s.dir, "reserve") }

func (s *space) giveUpReserve() error {
	if err := os.Remove(s.reservePath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.reserved = 0
	return nil
}

// allocate sees to the room that is to be there when nothing else is: each time the file has grown into it, and
// when all says that some of it was used. It takes nothing where there is little: half of an allocation
// stays when the rest fails.
func (s *space) allocate(all bool) error {
	size := s.file.Size()
	if size+s.headroom <= s.allocated && !all {
		return nil
	}
	var errs []error
	const page = 4 << 10
	if n := min(s.reserve, s.reserved+s.free()-s.hard) &^ (page - 1); n >= s.segment && n > s.reserved {
		err := preallocate(s.reservePath(), n, os.O_RDWR|os.O_CREATE)
		if err == nil {
			s.reserved = n
		}
		errs = append(errs, err)
	}
	if size-s.file.SizeInUse() < s.headroom && s.free() >= s.hard+2*s.headroom {
		err := preallocate(filepath.Join(s.dir, "member", "snap", "db"), size+2*s.headroom, os.O_RDWR)
		if err == nil {
			s.allocated = size + 2*s.headroom
		}
		errs = append(errs, err)
	}
	if s.free() >= s.hard+s.segment {
		errs = append(errs, s.allocateSegment())
	}
	return errors.Join(errs...)
}

// allocateSegment makes the log's segment after the next. etcd allocates one ahead, under the names 0.tmp and
// 1.tmp in turn, and takes a file that is there; so the other name is free to hold the room for it.
func (s *space) allocateSegment() error {
	wal := filepath.Join(s.dir, "member", "wal")
	if _, err := os.Stat(wal); err != nil {
		return nil
	}
	for _, name := range []string{"0.tmp", "1.tmp"} {
		path := filepath.Join(wal, name)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return preallocate(path, s.segment, os.O_RDWR|os.O_CREATE)
		}
	}
	return nil
}

// preallocate gives a file blocks for so many bytes without changing its content or its size. A file system that
// cannot is no error: there the floor is all.
func preallocate(path string, n int64, flags int) error {
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	err = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, n)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
