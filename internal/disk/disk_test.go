package disk_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"minik8s/internal/disk"
)

// Whoever reads while it is written sees one content or the other, and nothing is left beside it.
func TestReplacedAsAWhole(t *testing.T) {
	for name, write := range map[string]func(string, []byte, fs.FileMode) error{"WriteFile": disk.WriteFile, "Publish": disk.Publish} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "file")
			contents := [][]byte{bytes.Repeat([]byte("a"), 100_000), bytes.Repeat([]byte("b"), 50_000)}
			if err := write(path, contents[0], 0o640); err != nil {
				t.Fatal(err)
			}
			quit, torn := make(chan struct{}), make(chan error, 1)
			go func() {
				defer close(torn)
				for {
					got, err := os.ReadFile(path)
					if err != nil || !bytes.Equal(got, contents[0]) && !bytes.Equal(got, contents[1]) {
						torn <- fmt.Errorf("%d bytes read, %v", len(got), err)
						return
					}
					select {
					case <-quit:
						return
					default:
					}
				}
			}()
			for i := range 50 {
				if err := write(path, contents[i%2], 0o640); err != nil {
					t.Fatal(err)
				}
			}
			close(quit)
			if err := <-torn; err != nil {
				t.Error(err)
			}
			st, err := os.Stat(path)
			if err != nil || st.Mode() != 0o640 {
				t.Errorf("%v, %v", st, err)
			}
			onlyFile(t, dir)
		})
	}
}

// A writer that fails half-way leaves the old content.
func TestFailureLeavesTheOld(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := disk.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	full := errors.New("no room")
	err := disk.Create(path, 0o600, func(w io.Writer) error {
		fmt.Fprint(w, "ne")
		return full
	})
	if !errors.Is(err, full) {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); string(got) != "old" {
		t.Errorf("%q, %v", got, err)
	}
	onlyFile(t, dir)
}

func onlyFile(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left in the directory: %v, %v", entries, err)
	}
}

// A directory that was open is closed; what is closed more than asked stays so.
func TestPrivate(t *testing.T) {
	for _, x := range []struct{ before, ask, after fs.FileMode }{
		{0, 0o700, 0o700}, {0o755, 0o700, 0o700}, {0o777, 0o750, 0o750}, {0o700, 0o750, 0o700},
	} {
		dir := filepath.Join(t.TempDir(), "d")
		if x.before != 0 {
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(dir, x.before); err != nil {
				t.Fatal(err)
			}
		}
		if err := disk.Private(dir, x.ask); err != nil {
			t.Fatal(err)
		}
		if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != x.after {
			t.Errorf("%o asked of %o: %v, %v", x.ask, x.before, st.Mode(), err)
		}
	}
}
