package results

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"minik8s/internal/disk"
)

// Store is a folder of results.
type Store struct{ dir string }

// New makes a store in a folder, which is made when it is first needed.
func New(dir string) *Store { return &Store{dir: dir} }

// File is a file that came back.
type File struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

const (
	partDir  = "part"
	filesDir = "files"
	listName = "list.json"
)

func (s *Store) of(uid string) (string, error) {
	if uid == "" || uid == "." || uid == ".." || filepath.Base(uid) != uid {
		return "", fmt.Errorf("%q is no UID", uid)
	}
	return filepath.Join(s.dir, uid), nil
}

// Incoming opens the folder into which a job's files come. The caller closes it.
func (s *Store) Incoming(uid string) (*os.Root, error) {
	dir, err := s.of(uid)
	if err != nil {
		return nil, err
	}
	part := filepath.Join(dir, partDir)
	if err := os.MkdirAll(part, 0o700); err != nil {
		return nil, err
	}
	return os.OpenRoot(part)
}

// Resume opens a file that comes, for writing after what is there. It begins anew if more is there than there should be.
func Resume(in *os.Root, name string, size int64) (f *os.File, have int64, err error) {
	if !fs.ValidPath(name) {
		return nil, 0, fmt.Errorf("%q: %w", name, fs.ErrInvalid)
	}
	if err := in.MkdirAll(path.Dir(name), 0o700); err != nil {
		return nil, 0, err
	}
	if f, err = in.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil {
		if have = info.Size(); have > size {
			have, err = 0, f.Truncate(0)
		}
	}
	if err == nil {
		_, err = f.Seek(have, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, have, nil
}

// ErrDamaged is a file that came back otherwise than it was. It has been removed: it is to be fetched again.
var ErrDamaged = errors.New("the file came back damaged")

// Check compares a file that has come with its size and checksum, and makes it last.
func Check(in *os.Root, want File) error {
	f, err := in.Open(want.Path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if err != nil {
		return err
	}
	if n != want.Size || hex.EncodeToString(sum.Sum(nil)) != want.SHA256 {
		if err := in.Remove(want.Path); err != nil {
			return err
		}
		return fmt.Errorf("%s: %w", want.Path, ErrDamaged)
	}
	return f.Sync()
}

// Complete makes what has come the job's results. Files that are not in the list are not among them.
func (s *Store) Complete(uid string, list []File) error {
	dir, err := s.of(uid)
	if err != nil {
		return err
	}
	data, err := json.Marshal(list)
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
	return disk.WriteFile(filepath.Join(dir, listName), data, 0o600)
}

// List are a job's results; fs.ErrNotExist if they are not here.
func (s *Store) List(uid string) ([]File, error) {
	dir, err := s.of(uid)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(dir, listName))
	if err != nil {
		return nil, err
	}
	var list []File
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, listName), err)
	}
	return list, nil
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

// Remove removes what there is of a job.
func (s *Store) Remove(uid string) error {
	dir, err := s.of(uid)
	if err != nil {
		return err
	}
	return os.RemoveAll(dir)
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
