package results

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"minik8s/internal/disk"
)

// Store is a folder of results. Its methods may be called from any goroutine.
type Store struct {
	dir   string
	space func(dir string) (free, size int64, err error) // of its disk

	mu    sync.Mutex
	open  map[string]int // by job: how many have its Incoming
	rooms map[*Room]bool
}

// New makes a store in a folder, which is made when it is first needed.
func New(dir string) *Store {
	return &Store{dir: dir, space: space, open: map[string]int{}, rooms: map[*Room]bool{}}
}

// File is a file that came back.
type File struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// LeftOut are files that did not come, by their paths; a folder that nobody may look into ends with a slash. Of links only what
// they are is known. Unmatched are what was asked for and is not there.
type LeftOut struct {
	Unreadable []string `json:"unreadable,omitempty"`
	Vanished   []string `json:"vanished,omitempty"`
	Links      []string `json:"links,omitempty"`
	Unmatched  []string `json:"unmatched,omitempty"`
}

// There reports whether anything is on the cluster alone, or may be: a pattern that matches nothing may be a slip.
func (l LeftOut) There() bool { return len(l.Unreadable)+len(l.Links)+len(l.Unmatched) > 0 }

const (
	partDir  = "part"
	filesDir = "files"
	leftName = "left.json"
	listName = "list.json"
)

func (s *Store) of(uid string) (string, error) {
	if uid == "" || uid == "." || uid == ".." || filepath.Base(uid) != uid {
		return "", fmt.Errorf("%q is no UID", uid)
	}
	return filepath.Join(s.dir, uid), nil
}

// Incoming is the folder into which a job's files come.
type Incoming struct {
	*os.Root
	s   *Store
	uid string
}

// Incoming opens the folder into which a job's files come, unless ctx has ended. The caller closes it; until then nothing of the job
// is removed.
func (s *Store) Incoming(ctx context.Context, uid string) (*Incoming, error) {
	dir, err := s.of(uid)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil { // whoever ends it and then removes the job finds it gone, or open
		return nil, err
	}
	part := filepath.Join(dir, partDir)
	if _, err := os.Stat(filepath.Join(dir, listName)); errors.Is(err, fs.ErrNotExist) { // Complete was killed in the middle
		if err := os.Rename(filepath.Join(dir, filesDir), part); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	if err := disk.Private(s.dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(part, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(part)
	if err != nil {
		return nil, err
	}
	s.open[uid]++
	return &Incoming{Root: root, s: s, uid: uid}, nil
}

// Close closes the folder.
func (in *Incoming) Close() error {
	in.s.mu.Lock()
	defer in.s.mu.Unlock()
	if in.s.open[in.uid]--; in.s.open[in.uid] == 0 {
		delete(in.s.open, in.uid)
	}
	return in.Root.Close()
}

// Part is a file that comes. What is written to it is summed up on the way.
type Part struct {
	in   *os.Root
	name string
	file *os.File
	sum  hash.Hash
	have int64
	// begun is up to where the disk was told to write.
	begun int64
}

// writeAhead is how many bytes are gathered before the disk is told to write them.
const writeAhead = 8 << 20

// Resume opens a file that comes, for writing after what is there. It begins anew if more is there than there should be.
func Resume(in *os.Root, name string, size int64) (*Part, error) {
	if !fs.ValidPath(name) {
		return nil, fmt.Errorf("%q: %w", name, fs.ErrInvalid)
	}
	if err := in.MkdirAll(path.Dir(name), 0o700); err != nil {
		return nil, err
	}
	f, err := in.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	p := &Part{in: in, name: name, file: f, sum: sha256.New()}
	if p.have, err = io.Copy(p.sum, f); err == nil && p.have > size {
		p.have = 0
		p.sum.Reset()
		if err = f.Truncate(0); err == nil {
			_, err = f.Seek(0, io.SeekStart)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return p, nil
}

// Have is how many bytes are there.
func (p *Part) Have() int64 { return p.have }

// Write adds to the file.
func (p *Part) Write(b []byte) (int, error) {
	n, err := p.file.Write(b)
	p.sum.Write(b[:n])
	p.have += int64(n)
	// The disk begins to write meanwhile, so that Finish has little to wait for. An error shows there.
	if p.have-p.begun >= writeAhead {
		unix.SyncFileRange(int(p.file.Fd()), p.begun, p.have-p.begun, unix.SYNC_FILE_RANGE_WRITE) //nolint:errcheck // see above
		p.begun = p.have
	}
	return n, err
}

// Close leaves the file as it is, for a later Resume.
func (p *Part) Close() error { return p.file.Close() }

// Finish makes the file last, closes it, and returns its SHA-256 in hexadecimal.
func (p *Part) Finish() (sum string, err error) {
	err = p.file.Sync()
	if closed := p.file.Close(); err == nil {
		err = closed
	}
	return hex.EncodeToString(p.sum.Sum(nil)), err
}

// ErrDamaged is a file that came back otherwise than it was. It has been removed: it is to be fetched again.
var ErrDamaged = errors.New("the file came back damaged")

// Check compares the checksum of a file that has come with that which it had.
func Check(in *os.Root, name, sum, want string) error {
	if sum == want {
		return nil
	}
	if err := in.Remove(name); err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", name, ErrDamaged)
}

// Complete makes what has come the job's results. Files that are not in the list are not among them.
func (s *Store) Complete(uid string, list []File, left LeftOut) error {
	dir, err := s.of(uid)
	if err != nil {
		return err
	}
	data, err := json.Marshal(list)
	if err != nil {
		return err
	}
	missing, err := json.Marshal(left)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, partDir), 0o700); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(dir, filesDir)); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(dir, partDir), filepath.Join(dir, filesDir)); err != nil {
		return err
	}
	if err := disk.SyncAll(filepath.Join(dir, filesDir)); err != nil { // the names in it, too: the cluster's copy goes next
		return err
	}
	if err := disk.WriteFile(filepath.Join(dir, leftName), missing, 0o600); err != nil {
		return err
	}
	return disk.WriteFile(filepath.Join(dir, listName), data, 0o600)
}

// List are a job's results; fs.ErrNotExist if they are not here.
func (s *Store) List(uid string) (list []File, err error) {
	return list, s.read(uid, listName, &list)
}

// Left are the files that did not come with a job's results; fs.ErrNotExist if these are not here.
func (s *Store) Left(uid string) (left LeftOut, err error) {
	return left, s.read(uid, leftName, &left)
}

func (s *Store) read(uid, name string, into any) error {
	dir, err := s.of(uid)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, name), err)
	}
	return nil
}

// Open opens a result; fs.ErrNotExist if there is none of this name.
func (s *Store) Open(uid, name string) (*os.File, error) {
	dir, err := s.of(uid)
	if err != nil {
		return nil, err
	}
	if !fs.ValidPath(name) {
		return nil, fs.ErrNotExist
	}
	root, err := os.OpenRoot(filepath.Join(dir, filesDir))
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // nothing was written
	return root.Open(name)
}

// ErrOpen is a job whose files are coming: what it has cannot be removed now.
var ErrOpen = errors.New("the job's files are just being brought here")

// Remove removes what there is of a job. The error is ErrOpen while its files are coming.
func (s *Store) Remove(uid string) error { return s.remove(uid, "") }

// RemoveIncoming removes what has come of a job's files so far, but not results that are complete. Errors are as for Remove.
func (s *Store) RemoveIncoming(uid string) error {
	if err := s.remove(uid, partDir); err != nil {
		return err
	}
	dir, err := s.of(uid)
	if err == nil {
		os.Remove(dir) //nolint:errcheck // it is not empty where there are results
	}
	return err
}

func (s *Store) remove(uid, what string) error {
	dir, err := s.of(uid)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[uid] > 0 {
		return ErrOpen
	}
	return os.RemoveAll(filepath.Join(dir, what))
}

// UIDs are the jobs of which there is something.
func (s *Store) UIDs() ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out, err
}
