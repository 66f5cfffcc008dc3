package space

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
	"go.etcd.io/etcd/server/v3/storage/wal"
	"golang.org/x/sys/unix"

	"minik8s/internal/store"
)

const (
	// measureEvery is how long a measurement of free space is used while there are writes; without writes nothing is
	// measured.
	measureEvery = 20 * time.Millisecond
	// smallDisk is the size in bytes below which all amounts are a quarter.
	smallDisk = 1 << 30
	// SegmentSize is the size of etcd's log segments in bytes, on a disk that is not small.
	SegmentSize = 16 << 20
	// commit is how many bytes one commit may add to the file, whatever is written: bbolt writes the whole leaf anew, up to
	// five values before it is split, and a value has up to 2 MiB.
	commit = 12 << 20
)

// spaceLevel is how much space there is.
type spaceLevel int32

const (
	plenty spaceLevel = iota
	low               // only writes that free space, or keep the cluster alive, are admitted
	scarce            // as low, and in all no more bytes than are allocated beforehand
)

// Space watches the disk under etcd.
type Space struct {
	dir string
	log *slog.Logger
	// All in bytes. The level is low below floor bytes free, and scarce below hard. headroom, and up to a segment more, is
	// allocated beyond the end of the file; reserve is the size of the file that is deleted when space is scarce, and at
	// least a segment if there is no room for more; segment is a segment of the log, allowance is what may be written while
	// space is scarce.
	floor, hard, headroom, reserve, segment, allowance int64

	began        time.Time
	next, nextAt atomic.Int64 // when to measure again: nanoseconds after began, or this many admitted bytes
	deciding     atomic.Bool  // a measurement found too little space and is being repeated
	level        atomic.Int32
	allowed      atomic.Int64 // what is left of the allowance
	mu           sync.Mutex   // guards the fields below
	allocated    int64        // bytes of the file that have disk blocks
	reserved     int64        // bytes of the reserve that have disk blocks
	// open returns the database's file, which the server replaces when it is given a snapshot by another member; nil
	// until the server has started. file is what it returned last.
	open func() backend.Backend
	file backend.Backend
	// admitted counts bytes; marks are earlier values of it.
	admitted atomic.Int64
	marks    [2]mark
	// window is longer than a batch of writes takes to be in the file.
	window time.Duration
	// short is called when space becomes low.
	short func()
}

type mark struct{ at, total int64 }

// New measures the disk under etcd's directory, and deletes the reserve if etcd could not start otherwise. etcd writes its
// database's file once in each batch; short is called when there is too little space for all writes, and must not block.
func New(dir string, batch time.Duration, short func(), log *slog.Logger) (*Space, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return nil, fmt.Errorf("etcd's directory: %s: %w", dir, err)
	}
	s := &Space{dir: dir, log: log, began: time.Now(), segment: SegmentSize, window: 2 * batch, short: short}
	if int64(st.Blocks)*st.Bsize < smallDisk {
		s.segment /= 4
	}
	s.floor, s.hard = 4*s.segment, s.segment
	s.headroom, s.reserve, s.allowance = max(s.segment, commit), 2*s.segment, s.segment/2
	// etcd uses 0.tmp first. So if only 1.tmp exists, it gets that name: on a full disk etcd must find the file that
	// has blocks.
	wal := filepath.Join(dir, "member", "wal")
	if _, err := os.Stat(filepath.Join(wal, "0.tmp")); errors.Is(err, fs.ErrNotExist) {
		if err := os.Rename(filepath.Join(wal, "1.tmp"), filepath.Join(wal, "0.tmp")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("etcd's log: %w", err)
		}
	}
	s.reserved = onDisk(s.reservePath())
	if s.Free() >= s.hard {
		return s, nil
	}
	return s, s.clearWay()
}

// segments guards wal.SegmentSizeBytes, etcd's size of log segments, which is a variable of the whole process. etcd
// preallocates 64 MB for each segment; smaller ones save time and disk, and suffice for a cluster of one to a few
// dozen machines.
var segments sync.Mutex

// SizeLog has servers that start from now on write their log in segments of the size that suits the disk.
func (s *Space) SizeLog() {
	segments.Lock()
	defer segments.Unlock()
	if wal.SegmentSizeBytes != s.segment {
		wal.SegmentSizeBytes = s.segment
	}
}

// Use has the space of another server's database measured: it was started, or started again.
func (s *Space) Use(open func() backend.Backend) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = open
	s.current()
	s.next.Store(0)
}

// current has file be the one that is open; mu is held.
func (s *Space) current() {
	if s.open == nil {
		return
	}
	if now := s.open(); now != s.file {
		s.file = now
		s.allocated = onDisk(s.filePath())
	}
}

// clearWay gives up the reserve for a start on a full disk. etcd truncates the log's last segment there and allocates
// it again. Some file systems (ext4) can use blocks again only once it is written down that they are free.
func (s *Space) clearWay() error {
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

// Admit returns store.ErrNoSpace if n bytes may not be written; essential are writes that free space, or keep the cluster
// alive. Usually it only reads the clock.
func (s *Space) Admit(n int, essential bool) error {
	now, overdue := int64(time.Since(s.began)), s.admitted.Load()-s.nextAt.Load()
	switch {
	case overdue >= s.between(): // another goroutine measures, and is slower than the writers: they must not outrun it
		s.mu.Lock()
		s.measure(now)
		s.mu.Unlock()
	case (overdue >= 0 || now >= s.next.Load()) && s.mu.TryLock():
		s.measure(now)
		s.mu.Unlock()
	}
	if s.deciding.Load() { // wait until it is known whether there is space
		s.mu.Lock()
		//lint:ignore SA2001 locking is only to wait
		s.mu.Unlock()
	}
	is := spaceLevel(s.level.Load())
	if is != plenty && !(essential && s.roomFor(commit/2)) || is == scarce && s.allowed.Add(-int64(n)) < 0 {
		return store.ErrNoSpace
	}
	s.admitted.Add(int64(n))
	return nil
}

// Fits reports whether the file has room for one more commit of any kind: compaction is not to go on without. What it keeps
// for a reader of an old state is room again with the first write after that reader is done; so writes need half as much.
func (s *Space) Fits() bool { return s.roomFor(commit) }

// roomFor reports whether the file has so many bytes on the disk that nothing is in: in its empty pages, or beyond its end.
func (s *Space) roomFor(n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current(); s.file == nil {
		return true
	}
	return s.allocated-s.file.SizeInUse() >= n
}

// between is how many bytes may be admitted between two measurements; at most twice as many ever are.
func (s *Space) between() int64 { return s.segment / 8 }

// measure updates the level from the disk's free space, if that is due; mu is held.
func (s *Space) measure(now int64) {
	if now < s.next.Load() && s.admitted.Load() < s.nextAt.Load() {
		return
	}
	s.next.Store(now + int64(measureEvery))
	s.nextAt.Store(s.admitted.Load() + s.between())
	if s.current(); s.file == nil {
		return
	}
	was := spaceLevel(s.level.Load())
	is, free := s.levelWith(was, s.pending(now))
	if is != plenty && was == plenty {
		// The space may only seem low because admitted writes are not in the file yet. They are written now, which
		// gives them their blocks, and then the level is computed again.
		s.deciding.Store(true)
		s.file.ForceCommit()
		s.allInFile(now)
		is, free = s.levelWith(was, 0)
		s.deciding.Store(false)
	}
	if err := s.allocate(is != was); err != nil {
		s.log.Warn("no reserve for a full disk could be made", "error", err)
	}
	if is == plenty && was != plenty && s.reserved < s.segment {
		is = low // or the next start on a full disk might fail
	}
	if is == scarce && was != scarce {
		s.allowed.Store(s.allowance)
		if err := s.giveUpReserve(); err != nil {
			s.log.Error("the reserve for a full disk could not be given up", "error", err)
		}
	}
	if is == was {
		return
	}
	s.level.Store(int32(is))
	switch {
	case is == plenty:
		s.log.Info("the disk has room again: everything is written", "free", free)
	case was == plenty:
		s.log.Error("the disk is full: new objects and changes are refused until there is room; deleting goes on", "free", free, "needed", s.floor, "dir", s.dir)
		s.short()
	}
}

// levelWith is the level once pending more bytes are in the file, and the free bytes of the disk. The log needs space
// on the disk; the database can also use its file's empty pages.
func (s *Space) levelWith(was spaceLevel, pending int64) (spaceLevel, int64) {
	free := s.Free()
	inFile := max(0, s.file.Size()-s.file.SizeInUse())
	need := s.floor
	if was != plenty { // hysteresis: no flapping at the limit
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

// pending is how many bytes may have been admitted but are not in the file yet: all of the last batches, counted
// twice because pages are not full.
func (s *Space) pending(now int64) int64 {
	total := s.admitted.Load()
	if now-s.marks[1].at > int64(s.window) {
		s.marks[0], s.marks[1] = s.marks[1], mark{now, total}
	}
	return 2 * (total - s.marks[0].total)
}

// allInFile records that nothing is pending.
func (s *Space) allInFile(now int64) {
	s.marks[0] = mark{now, s.admitted.Load()}
	s.marks[1] = s.marks[0]
}

// FileReplaced is to be called after defragmenting: the new file has no headroom yet.
func (s *Space) FileReplaced() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current()
	s.allocated = onDisk(s.filePath())
	s.next.Store(0)
	if err := s.allocate(true); err != nil {
		s.log.Warn("no reserve for a full disk could be made", "error", err)
	}
}

// Free is the disk's free space in bytes; if that cannot be read, as much as is needed.
func (s *Space) Free() int64 {
	var st unix.Statfs_t
	if err := unix.Statfs(s.dir, &st); err != nil {
		return s.floor
	}
	return int64(st.Bavail) * st.Bsize
}

// Spare is how many bytes of the disk may be used for something else before writes are refused.
func (s *Space) Spare() int64 { return s.Free() - s.floor - s.segment }

// Low reports whether only essential writes are admitted.
func (s *Space) Low() bool { return spaceLevel(s.level.Load()) != plenty }

// Segment is the size of a segment of etcd's log here, in bytes.
func (s *Space) Segment() int64 { return s.segment }

// Headroom is how many bytes are allocated beyond the end of the database's file.
func (s *Space) Headroom() int64 { return s.headroom }

func (s *Space) reservePath() string { return filepath.Join(s.dir, "reserve") }

func (s *Space) filePath() string { return filepath.Join(s.dir, "member", "snap", "db") }

// onDisk is how many bytes of a file have disk blocks, 0 if there is none.
func onDisk(path string) int64 {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return 0
	}
	const block = 512 // the unit of st_blocks, see stat(2)
	return st.Blocks * block
}

func (s *Space) giveUpReserve() error {
	if err := os.Remove(s.reservePath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.reserved = 0
	return nil
}

// allocate renews the space that is allocated beforehand: when the file has grown into its headroom, and, with all,
// when other parts were used. It takes no more than there is: a failed allocation would keep the part that succeeded.
func (s *Space) allocate(all bool) error {
	size, allocated := s.file.Size(), s.allocated
	if size+s.headroom <= allocated && !all {
		return nil
	}
	const page = 4 << 10
	var errs []error
	// The file comes first: nothing replaces its blocks.
	if to := min(size+s.headroom+s.segment, max(size, allocated)+s.Free()-2*s.hard) &^ (page - 1); to > allocated && to >= size+commit {
		err := preallocate(s.filePath(), to, os.O_RDWR)
		if err == nil {
			s.allocated = to
		}
		errs = append(errs, err)
	}
	if _, err := os.Stat(s.reservePath()); errors.Is(err, fs.ErrNotExist) {
		s.reserved = 0 // somebody else may have deleted it
	}
	if n := min(s.reserve, s.reserved+s.Free()-s.hard) &^ (page - 1); n >= s.segment && n > s.reserved {
		err := preallocate(s.reservePath(), n, os.O_RDWR|os.O_CREATE)
		if err == nil {
			s.reserved = n
		}
		errs = append(errs, err)
	}
	if s.Free() >= s.hard+s.segment {
		errs = append(errs, s.allocateSegment())
	}
	return errors.Join(errs...)
}

// allocateSegment allocates the log segment after the next. etcd allocates one segment ahead, under the names 0.tmp
// and 1.tmp in turn, and uses a file that exists; so the other name can be allocated for it.
func (s *Space) allocateSegment() error {
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

// preallocate gives a file disk blocks for n bytes without changing its content or its size. It is not an error if
// the file system cannot do that: then only the floor protects etcd.
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
