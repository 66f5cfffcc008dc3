package recovery

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/rand"

	"minik8s/internal/disk"
	"minik8s/internal/store/etcd"
	"minik8s/internal/store/etcd/space"
)

// Restored is what Restore and Recover have made.
type Restored struct {
	// Revision is the last one of the content; the next is far above all that anybody has seen.
	Revision int64
	// Aside is the directory in which the files are that were there before; empty if there were none.
	Aside string
}

// revisionBump is what is added to the revision of a store that was restored: more than there can have been writes
// after the snapshot, so that who has seen those never sees the revision go back. It is the number that etcd recommends.
const revisionBump = 1_000_000_000

// ErrPresent means that there is a store already.
var ErrPresent = errors.New("there is a store already")

// Restore makes the store in dir, which nobody may have open, one of a single member with the content of a snapshot. Is
// there a store already, it is an error, or with force the store is kept beside. Watches from before are told that their
// history is gone. It is all done or not at all.
func Restore(dir, file string, force bool, log *slog.Logger) (Restored, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Restored{}, err
	}
	if _, err := os.Stat(etcd.MemberDir(dir)); !force && !errors.Is(err, fs.ErrNotExist) {
		return Restored{}, errors.Join(err, ErrPresent)
	}
	if err := room(dir, file); err != nil {
		return Restored{}, err
	}
	return install(dir, file, false, log)
}

// Recover makes the store in dir, which nobody may have open, one of a single member with all that this member has,
// whether it voted or not, and whether the others had agreed to it or not: it may have been acknowledged. It is for when
// a majority of those that voted is lost for good. What was there before is kept beside. It is all done or not at all.
func Recover(ctx context.Context, dir string, log *slog.Logger) (r Restored, err error) {
	if _, err := os.Stat(filepath.Join(etcd.MemberDir(dir), "wal")); err != nil {
		return Restored{}, fmt.Errorf("there is no store in %s: %w", dir, err)
	}
	if err := room(dir, filepath.Join(etcd.MemberDir(dir), "snap", "db")); err != nil {
		return Restored{}, err
	}
	// The server that replays the log works on a copy.
	work := filepath.Join(dir, "recovering")
	if err := os.RemoveAll(work); err != nil {
		return Restored{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if err := os.Mkdir(work, 0o700); err != nil {
		return Restored{}, err
	}
	if err := os.CopyFS(etcd.MemberDir(work), os.DirFS(etcd.MemberDir(dir))); err != nil {
		return Restored{}, err
	}
	if err := remainAlone(etcd.MemberDir(work), etcd.ZapLogger(log)); err != nil {
		return Restored{}, err
	}
	s, err := etcd.Open(ctx, etcd.Config{Dir: work, Log: log})
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		return Restored{}, err
	}
	return install(dir, filepath.Join(etcd.MemberDir(work), "snap", "db"), true, log)
}

// room refuses to begin what the disk has no room for: copies of a file, and logs.
func room(dir, file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return err
	}
	const logs = 8 * space.SegmentSize
	if free, need := int64(st.Bavail)*st.Bsize, 2*info.Size()+logs; free < need {
		return fmt.Errorf("%s has %d MiB free, and this needs %d MiB", dir, free>>20, need>>20)
	}
	return nil
}

// install makes a member of a database's file, and then puts it in the place of the one in dir. raw says that the file
// is a database without the checksum of a snapshot.
func install(dir, file string, raw bool, log *slog.Logger) (r Restored, err error) {
	sp, err := space.New(dir, etcd.BatchInterval, func() {}, log)
	if err != nil {
		return Restored{}, err
	}
	sp.SizeLog()
	if !raw { // before anything else reads it: a file that is cut off ends who maps it into memory
		if err := Check(file); err != nil {
			return Restored{}, err
		}
	}
	m := snapshot.NewV3(etcd.ZapLogger(log))
	status, err := m.Status(file)
	if err != nil {
		return Restored{}, fmt.Errorf("%s is no snapshot of a store: %w", file, err)
	}
	work := filepath.Join(dir, "replaced-"+time.Now().UTC().Format("20060102T150405.000Z"))
	if err := os.Mkdir(work, 0o700); err != nil {
		return Restored{}, err
	}
	defer func() {
		if r.Aside == "" { // else what was there before is in it
			err = errors.Join(err, os.RemoveAll(work))
		}
	}()
	const name, address = "default", "http://localhost:2380" // those of a member that has no peers yet
	err = m.Restore(snapshot.RestoreConfig{SnapshotPath: file, Name: name, OutputDataDir: work, PeerURLs: []string{address},
		// A token of its own makes it another cluster than the one that the content comes from: members of that one that
		// are still somewhere cannot take it for theirs.
		InitialCluster: name + "=" + address, InitialClusterToken: rand.String(32),
		SkipHashCheck: raw, RevisionBump: revisionBump, MarkCompacted: true})
	if err != nil {
		return Restored{}, fmt.Errorf("%s could not be restored: %w", file, err)
	}
	r = Restored{Revision: status.Revision}
	if r.Aside, err = exchange(etcd.MemberDir(work), etcd.MemberDir(dir)); err != nil {
		return Restored{}, err
	}
	// It has no peers yet. Were this file there still, it would only start more slowly.
	if err := etcd.ForgetPeers(dir); err != nil {
		return r, err
	}
	return r, disk.SyncDir(dir)
}

// exchange puts what is at made to where it belongs, in one step, and returns where what was there has come to; empty
// if nothing was there.
func exchange(made, place string) (aside string, err error) {
	if err := disk.SyncAll(made); err != nil {
		return "", err
	}
	if _, err := os.Stat(place); errors.Is(err, fs.ErrNotExist) {
		return "", os.Rename(made, place)
	}
	if err := unix.Renameat2(unix.AT_FDCWD, made, unix.AT_FDCWD, place, unix.RENAME_EXCHANGE); err != nil {
		return "", fmt.Errorf("exchanging %s and %s: %w", made, place, err)
	}
	return filepath.Dir(made), nil
}

// Check says whether a file is a whole snapshot.
func Check(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it is only read
	info, err := f.Stat()
	if err != nil {
		return err
	}
	sum, want := sha256.New(), make([]byte, sha256.Size)
	if n := info.Size() - sha256.Size; n <= 0 || n%sector != 0 {
		return fmt.Errorf("%s is no snapshot, or not a whole one: its size is not that of a database and its checksum", file)
	} else if _, err = io.CopyN(sum, f, n); err == nil {
		_, err = io.ReadFull(f, want)
	}
	if err == nil && !bytes.Equal(sum.Sum(nil), want) {
		err = fmt.Errorf("%s is damaged: its checksum is not that of its content", file)
	}
	return err
}

// sector divides the size of a database's file.
const sector = 512
