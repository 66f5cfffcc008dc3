package results

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

func TestStore(t *testing.T) {
	s := New(filepath.Join(t.TempDir(), "gpu"))
	const uid = "u-1"
	if _, err := s.List(uid); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	in, err := s.Incoming(t.Context(), uid)
	if err != nil {
		t.Fatal(err)
	}
	want := File{Path: "out/a b", Size: 6, SHA256: sum("abcdef")}
	for _, piece := range []string{"abc", "def", ""} { // a transfer that broke in the middle
		f, err := Resume(in.Root, want.Path, want.Size)
		if err != nil || piece == "def" && f.Have() != 3 {
			t.Fatal(f, err)
		}
		if _, err := io.WriteString(f, piece); err != nil {
			t.Fatal(err)
		}
		if piece == "abc" {
			f.Close() //nolint:errcheck // it broke
			continue
		}
		sum, err := f.Finish()
		if err == nil {
			err = Check(in.Root, want.Path, sum, want.SHA256)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Remove(uid); !errors.Is(err, ErrOpen) {
		t.Errorf("files that are coming are removed: %v", err)
	}
	left := LeftOut{Unreadable: []string{"x"}, Vanished: []string{"y"}}
	if err := s.Complete(uid, []File{want}, left); err != nil {
		t.Fatal(err)
	}
	in.Close() //nolint:errcheck // nothing was written
	if got, err := s.Left(uid); err != nil || !reflect.DeepEqual(got, left) {
		t.Error(got, err)
	}
	if err := s.RemoveIncoming(uid); err != nil {
		t.Error(err)
	}
	if list, err := s.List(uid); err != nil || len(list) != 1 || list[0] != want {
		t.Error(list, err)
	}
	f, err := s.Open(uid, want.Path)
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(f); string(b) != "abcdef" {
		t.Errorf("%q", b)
	}
	f.Close() //nolint:errcheck // it was only read
	for _, name := range []string{"../list.json", "/etc/passwd", "", "out/../../list.json", "missing"} {
		if f, err := s.Open(uid, name); err == nil {
			f.Close() //nolint:errcheck // it was only read
			if name != "" {
				t.Errorf("%q is a result", name)
			}
		}
	}
	if info, err := os.Stat(s.dir); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others can read the results: %v %v", info.Mode(), err)
	}
	if uids, err := s.UIDs(); err != nil || len(uids) != 1 || uids[0] != uid {
		t.Error(uids, err)
	}
	if err := s.Remove(uid); err != nil {
		t.Fatal(err)
	}
	if uids, err := s.UIDs(); err != nil || len(uids) != 0 {
		t.Error(uids, err)
	}
	for _, bad := range []string{"", "..", ".", "a/b"} {
		if err := s.Remove(bad); err == nil {
			t.Errorf("%q is a UID", bad)
		}
	}
}

func TestDamagedAndHostile(t *testing.T) {
	s := New(t.TempDir())
	in, err := s.Incoming(t.Context(), "u")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close() //nolint:errcheck // of a test
	f, err := Resume(in.Root, "a", 3)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(f, "abx"); err != nil {
		t.Fatal(err)
	}
	got, err := f.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(in.Root, "a", got, sum("abc")); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
	if f, err = Resume(in.Root, "a", 3); err != nil || f.Have() != 0 {
		t.Fatalf("what was damaged is kept: %v %v", f, err)
	}
	if _, err := io.WriteString(f, "abcd"); err != nil {
		t.Fatal(err)
	}
	f.Close() //nolint:errcheck // of a test
	if f, err = Resume(in.Root, "a", 3); err != nil || f.Have() != 0 {
		t.Fatalf("more than there is is kept: %v %v", f, err)
	}
	f.Close() //nolint:errcheck // of a test
	for _, name := range []string{"../x", "/x", "a/../../x"} {
		if _, err := Resume(in.Root, name, 1); err == nil {
			t.Errorf("%q is written", name)
		}
	}
	// A link in the folder leads nowhere.
	if err := in.Symlink("/tmp", "link"); err != nil {
		t.Fatal(err)
	}
	if _, err := Resume(in.Root, "link/x", 1); err == nil {
		t.Error("a link leads out of the folder")
	}
}

// Who has ended the transfer of a job and removes it finds nothing new there.
func TestRemovedForGood(t *testing.T) {
	s := New(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	in, err := s.Incoming(ctx, "u")
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	for _, remove := range []func(string) error{s.Remove, s.RemoveIncoming} {
		if err := remove("u"); !errors.Is(err, ErrOpen) {
			t.Error(err)
		}
	}
	in.Close() //nolint:errcheck // of a test
	if err := s.RemoveIncoming("u"); err != nil {
		t.Error(err)
	}
	if _, err := s.Incoming(ctx, "u"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if uids, err := s.UIDs(); err != nil || len(uids) != 0 {
		t.Error(uids, err)
	}
}

// A kill in the middle of Complete costs nothing that has come.
func TestCompleteAgain(t *testing.T) {
	s := New(t.TempDir())
	if err := os.MkdirAll(filepath.Join(s.dir, "u", filesDir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "u", filesDir, "a"), []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := s.Incoming(t.Context(), "u")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close() //nolint:errcheck // of a test
	f, err := Resume(in.Root, "a", 3)
	if err != nil || f.Have() != 3 {
		t.Fatalf("%v %v", f, err)
	}
	f.Close() //nolint:errcheck // of a test
}
