package gpu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"minik8s/internal/gpu/results"
	"minik8s/internal/slurm"
	"minik8s/internal/slurm/batch"
)

const (
	// copies is how many files of a job come at a time: small ones cost little but round trips.
	copies = 4
	// A call for checksums is of so many files, bytes and bytes of names at most: the answer to a call that breaks is lost.
	sumFiles = 500
	sumBytes = 8 << 30
	sumNames = 128 << 10
	// badReads is after how many attempts a file is left out that the login node fails to read, whatever the reason.
	badReads = 5
)

// source is where a job's files come from; slurm.Cluster is one.
type source interface {
	List(ctx context.Context, l batch.Layout) ([]slurm.Entry, error)
	Copy(ctx context.Context, l batch.Layout, name string, offset int64, to io.Writer) error
	Sums(ctx context.Context, l batch.Layout, names []string) ([]string, error)
}

// transfer brings a job's files back, in as many attempts as it takes. What one has found out the next need not find out again.
type transfer struct {
	uid       string
	layout    batch.Layout
	store     *results.Store
	wanted    func(names []string) []string // chooses among the files that there are
	unmatched func(names []string) []string // what was asked for and is not there; nil: nobody asks

	mu   sync.Mutex
	came map[string]sum // files that are here, as they are here
	sums map[string]sum // files that are there, as they are there
	bad  map[string]int // how often one could not be read
	left results.LeftOut
}

// sum is a file's checksum when it had a size.
type sum struct {
	size int64
	sha  string
}

func newTransfer(uid string, layout batch.Layout, store *results.Store) *transfer {
	return &transfer{uid: uid, layout: layout, store: store, came: map[string]sum{}, sums: map[string]sum{}, bad: map[string]int{}}
}

// try is one attempt. The error is a *results.FullError if the disk here has no room.
func (t *transfer) try(ctx context.Context, from source) error {
	files, err := t.list(ctx, from)
	if err != nil {
		return err
	}
	room, err := t.store.Room(t.uid, files)
	if err != nil {
		return err
	}
	defer room.GiveBack()
	in, err := t.store.Incoming(ctx, t.uid)
	if err != nil {
		return t.local(err, files)
	}
	defer in.Close() //nolint:errcheck // the files were synced
	// The cluster sums up while the files come. Neither goes on without the other.
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return t.sum(ctx, from, files) })
	all.Go(func() error {
		some, ctx := errgroup.WithContext(ctx)
		some.SetLimit(copies)
		for _, f := range files {
			some.Go(func() error {
				defer room.Used(f.Path)
				return t.bring(ctx, from, in, f)
			})
		}
		return some.Wait()
	})
	if err := all.Wait(); err != nil {
		return err
	}
	return t.complete(in, files)
}

// list is what is to be brought, without what is known to be unreadable.
func (t *transfer) list(ctx context.Context, from source) ([]results.File, error) {
	entries, err := from.List(ctx, t.layout)
	if err != nil {
		return nil, err
	}
	t.left = results.LeftOut{}
	of, names := map[string]slurm.Entry{}, make([]string, len(entries))
	for i, e := range entries {
		of[e.Path], names[i] = e, e.Path
	}
	if t.unmatched != nil {
		t.left.Unmatched = t.unmatched(names)
	}
	var out []results.File
	for _, n := range t.wanted(names) {
		e := of[n]
		switch {
		case e.Link:
			t.left.Links = append(t.left.Links, n)
		case e.Folder:
			t.left.Unreadable = append(t.left.Unreadable, n+"/")
		case e.Closed:
			t.left.Unreadable = append(t.left.Unreadable, n)
		default:
			out = append(out, results.File{Path: n, Size: e.Size})
		}
	}
	return out, nil
}

// bring brings one file, from where an earlier attempt broke, or leaves it out.
func (t *transfer) bring(ctx context.Context, from source, in *results.Incoming, f results.File) error {
	t.mu.Lock()
	before := t.came[f.Path]
	t.mu.Unlock()
	if info, err := in.Lstat(f.Path); err == nil && before.sha != "" && before.size == f.Size && info.Size() == f.Size {
		return nil
	}
	to, err := results.Resume(in.Root, f.Path, f.Size)
	if err != nil {
		return t.local(err, []results.File{f})
	}
	if to.Have() < f.Size {
		err = from.Copy(ctx, t.layout, f.Path, to.Have(), to)
	}
	if err == nil && to.Have() != f.Size {
		err = fmt.Errorf("%d of %d bytes came", to.Have(), f.Size)
	}
	var sha string
	if err != nil {
		to.Close() //nolint:errcheck // it failed already
	} else {
		sha, err = to.Finish()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err == nil:
		t.came[f.Path] = sum{f.Size, sha}
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case results.Full(err): // what does not fit makes room
		in.Remove(f.Path) //nolint:errcheck // the disk is full: what is said is that
		return t.local(err, []results.File{f})
	case errors.Is(err, fs.ErrNotExist):
		t.left.Vanished = append(t.left.Vanished, f.Path)
	case errors.Is(err, fs.ErrPermission):
		t.left.Unreadable = append(t.left.Unreadable, f.Path)
	case slurm.Unreadable(err):
		if t.bad[f.Path]++; t.bad[f.Path] < badReads {
			return fmt.Errorf("%q: after %d bytes: %w", f.Path, to.Have(), err)
		}
		t.left.Unreadable = append(t.left.Unreadable, f.Path)
	default:
		return fmt.Errorf("%q: after %d bytes: %w", f.Path, to.Have(), err)
	}
	in.Remove(f.Path) //nolint:errcheck // it is not among the results
	return nil
}

// local makes an error of this machine's disk, if it is full, one that says what is missing for some files.
func (t *transfer) local(err error, files []results.File) error {
	if !results.Full(err) {
		return err
	}
	need := int64(0)
	for _, f := range files {
		need += f.Size
	}
	return t.store.NoRoom(need)
}

// sum asks for the checksums that are not known.
func (t *transfer) sum(ctx context.Context, from source, files []results.File) error {
	var some []results.File
	var bytes, names int64
	ask := func() error {
		if len(some) == 0 {
			return nil
		}
		of := make([]string, len(some))
		for i, f := range some {
			of[i] = f.Path
		}
		got, err := from.Sums(ctx, t.layout, of)
		if err != nil {
			return err
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		for i, f := range some {
			t.sums[f.Path] = sum{f.Size, got[i]}
		}
		some, bytes, names = nil, 0, 0
		return nil
	}
	for _, f := range files {
		t.mu.Lock()
		known := t.sums[f.Path]
		t.mu.Unlock()
		if known.sha != "" && known.size == f.Size {
			continue
		}
		if len(some) == sumFiles || bytes+f.Size > sumBytes || names+int64(len(f.Path)) > sumNames {
			if err := ask(); err != nil {
				return err
			}
		}
		some, bytes, names = append(some, f), bytes+f.Size, names+int64(len(f.Path))
	}
	return ask()
}

// complete compares all that came with what is there, and makes it the job's results.
func (t *transfer) complete(in *results.Incoming, files []results.File) error {
	var list []results.File
	var wrong error
	for _, f := range files {
		if slices.Contains(t.left.Unreadable, f.Path) || slices.Contains(t.left.Vanished, f.Path) {
			continue
		}
		here, there := t.came[f.Path], t.sums[f.Path]
		if there.sha == "" {
			delete(t.sums, f.Path)
			wrong = fmt.Errorf("%q: the cluster gives no checksum", f.Path)
			continue
		}
		if err := results.Check(in.Root, f.Path, here.sha, there.sha); err != nil {
			delete(t.came, f.Path)
			delete(t.sums, f.Path)
			wrong = err
			continue
		}
		list = append(list, results.File{Path: f.Path, Size: f.Size, SHA256: here.sha})
	}
	if wrong != nil {
		return wrong
	}
	slices.Sort(t.left.Unreadable)
	slices.Sort(t.left.Vanished)
	return t.local(t.store.Complete(t.uid, list, t.left), nil)
}

// namesIn is how many bytes of names a message has.
const namesIn = 500

// leftOut tells which files did not come; "" if all did.
func leftOut(left results.LeftOut) string {
	var b strings.Builder
	room := namesIn
	for _, x := range []struct {
		why   string
		names []string
	}{{"cannot be read", left.Unreadable}, {"are links, which do not come", left.Links}, {"were gone before they were copied", left.Vanished},
		{"patterns of spec.results match nothing", left.Unmatched}} {
		if len(x.names) == 0 {
			continue
		}
		fmt.Fprintf(&b, "; %d %s:", len(x.names), x.why)
		for i, n := range x.names {
			text := fmt.Sprintf(" %q", n)
			if len(text) > room {
				fmt.Fprintf(&b, " and %d more", len(x.names)-i)
				break
			}
			room -= len(text)
			b.WriteString(text)
		}
	}
	return b.String()
}
