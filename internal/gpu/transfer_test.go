package gpu

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/sys/unix"

	"minik8s/internal/gpu/results"
	"minik8s/internal/slurm"
	"minik8s/internal/slurm/batch"
)

// there is a job's files on a cluster that does as it is told.
type there struct {
	files map[string]string
	// copied is called before a file is copied; an error comes after half of it.
	copied func(ctx context.Context, name string) error
	// summed is called before files are summed up.
	summed func(ctx context.Context, names []string) error

	mu     sync.Mutex
	copies map[string]int // bytes, by file
	sums   []string       // names that were asked for
}

func (f *there) List(context.Context, batch.Layout) ([]slurm.Entry, error) {
	var out []slurm.Entry
	for n, text := range f.files {
		e := slurm.Entry{Path: strings.TrimSuffix(n, "/"), Size: int64(len(text)), Closed: text == "closed" || text == "link" || strings.HasSuffix(n, "/"), Link: text == "link", Folder: strings.HasSuffix(n, "/")}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b slurm.Entry) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

func (f *there) Copy(ctx context.Context, _ batch.Layout, name string, offset int64, to io.Writer) error {
	text := f.files[name][offset:]
	if f.copied != nil {
		if err := f.copied(ctx, name); err != nil {
			text = text[:len(text)/2]
			io.WriteString(to, text) //nolint:errcheck // it fails below
			return err
		}
	}
	f.mu.Lock()
	if f.copies == nil {
		f.copies = map[string]int{}
	}
	f.copies[name] += len(text)
	f.mu.Unlock()
	_, err := io.WriteString(to, text)
	return err
}

func (f *there) Sums(ctx context.Context, _ batch.Layout, names []string) ([]string, error) {
	if f.summed != nil {
		if err := f.summed(ctx, names); err != nil {
			return nil, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sums = append(f.sums, names...)
	out := make([]string, len(names))
	for i, n := range names {
		if text, ok := f.files[n]; ok {
			sum := sha256.Sum256([]byte(text))
			out[i] = hex.EncodeToString(sum[:])
		}
	}
	return out, nil
}

func newTry(dir string) (*transfer, *results.Store) {
	store := results.New(dir)
	try := newTransfer("u", batch.Layout{}, store)
	try.wanted = func(names []string) []string { return names }
	return try, store
}

func paths(t *testing.T, s *results.Store) string {
	t.Helper()
	list, err := s.List("u")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range list {
		out = append(out, f.Path)
	}
	return strings.Join(out, " ")
}

var errCut = errors.New("the connection broke")

// What cannot be read is left out and named; the rest comes.
func TestLeftOut(t *testing.T) {
	failing := &sftp.StatusError{Code: 4}
	from := &there{files: map[string]string{"job.out": "out", "closed": "closed", "dir/": "", "gone": "xx", "late": "yy", "sick": "zz"}}
	from.copied = func(_ context.Context, name string) error {
		return map[string]error{"gone": fs.ErrNotExist, "late": fs.ErrPermission, "sick": failing}[name]
	}
	try, store := newTry(t.TempDir())
	from.files["latest"] = "link"
	try.unmatched = func([]string) []string { return []string{"out.dat"} }
	for i := range badReads - 1 {
		if err := try.try(t.Context(), from); !errors.As(err, &failing) {
			t.Fatal(i, err)
		}
	}
	if err := try.try(t.Context(), from); err != nil {
		t.Fatal(err)
	}
	if got := paths(t, store); got != "job.out" {
		t.Errorf("brought: %s", got)
	}
	left, err := store.Left("u")
	if got := leftOut(left); err != nil || got != `; 4 cannot be read: "closed" "dir/" "late" "sick"; 1 are links, which do not come: "latest"`+
		`; 1 were gone before they were copied: "gone"; 1 patterns of spec.results match nothing: "out.dat"` || !left.There() {
		t.Errorf("%s %v", got, err)
	}
	many := results.LeftOut{}
	for i := range 1000 {
		many.Unreadable = append(many.Unreadable, fmt.Sprintf("a\x1b name %d", i))
	}
	if got := leftOut(many); len(got) > 700 || !strings.Contains(got, " more") || strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
}

// An attempt after one that broke asks for what is not known yet, and no more. Checksums do not hold up a copy that failed.
func TestGoesOn(t *testing.T) {
	from := &there{files: map[string]string{"a": "aaaa", "b": strings.Repeat("b", 1000)}}
	try, store := newTry(t.TempDir())
	summing := make(chan bool)
	from.copied = func(_ context.Context, name string) error {
		if name == "b" {
			<-summing
			return errCut
		}
		return nil
	}
	from.summed = func(ctx context.Context, _ []string) error {
		close(summing)
		<-ctx.Done()
		return ctx.Err()
	}
	if err := try.try(t.Context(), from); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	from.copied, from.summed = func(_ context.Context, name string) error {
		if name == "b" {
			for ; ; time.Sleep(time.Millisecond) { // until the checksums are known
				try.mu.Lock()
				n := len(try.sums)
				try.mu.Unlock()
				if n == 2 {
					return errCut
				}
			}
		}
		return nil
	}, nil
	if err := try.try(t.Context(), from); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	from.copied = nil
	if err := try.try(t.Context(), from); err != nil {
		t.Fatal(err)
	}
	if got := paths(t, store); got != "a b" {
		t.Errorf("brought: %s", got)
	}
	if len(from.sums) != 2 || from.copies["a"] != 4 || from.copies["b"] != 250 {
		t.Errorf("asked for %v and %v", from.sums, from.copies)
	}
}

// What comes damaged is fetched, and summed up, again.
func TestDamaged(t *testing.T) {
	from := &there{files: map[string]string{"a": "aaaa", "b": "bbbb"}}
	try, store := newTry(t.TempDir())
	try.sums["a"] = sum{4, "other"}
	if err := try.try(t.Context(), from); !errors.Is(err, results.ErrDamaged) {
		t.Fatal(err)
	}
	if err := try.try(t.Context(), from); err != nil {
		t.Fatal(err)
	}
	if got := paths(t, store); got != "a b" || from.copies["a"] != 8 || from.copies["b"] != 4 {
		t.Errorf("brought: %s, %v", got, from.copies)
	}
}

// A disk without room stays as it is; one that fills up gets back what did not fit.
func TestFullHere(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skip("only root can make a small disk: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	var full *results.FullError
	from := &there{files: map[string]string{"big": strings.Repeat("x", 7<<20)}}
	try, store := newTry(filepath.Join(dir, "gpu"))
	if err := try.try(t.Context(), from); !errors.As(err, &full) || full.Need != 7<<20 || full.Reserve != 2<<20 {
		t.Fatal(err)
	}
	if uids, err := store.UIDs(); err != nil || len(uids) != 0 || len(from.copies) != 0 {
		t.Errorf("begun: %v %v", uids, err)
	}
	from.files["big"] = strings.Repeat("x", 5<<20)
	other := filepath.Join(dir, "other")
	from.copied = func(context.Context, string) error { // somebody else is quicker
		fd, err := unix.Open(other, unix.O_CREAT|unix.O_WRONLY, 0o600)
		if err == nil {
			err = unix.Fallocate(fd, 0, 0, 6<<20)
			unix.Close(fd)
		}
		if err != nil {
			t.Error(err)
		}
		return nil
	}
	if err := try.try(t.Context(), from); !errors.As(err, &full) || full.Free < 1<<20 {
		t.Fatalf("%v", err)
	}
	if err := unix.Unlink(other); err != nil {
		t.Fatal(err)
	}
	from.copied = nil
	if err := try.try(t.Context(), from); err != nil {
		t.Fatal(err)
	}
	if got := paths(t, store); got != "big" {
		t.Errorf("brought: %s", got)
	}
}

// When it is cancelled, nothing more comes.
func TestCancelled(t *testing.T) {
	from := &there{files: map[string]string{"a": "aaaa"}}
	try, store := newTry(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	from.copied = func(ctx context.Context, _ string) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}
	if err := try.try(ctx, from); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := store.Remove("u"); err != nil {
		t.Error(err)
	}
	if err := try.try(ctx, from); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if uids, err := store.UIDs(); err != nil || len(uids) != 0 {
		t.Errorf("left: %v %v", uids, err)
	}
}
