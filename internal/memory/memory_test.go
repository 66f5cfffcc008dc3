package memory

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A mapping with relocations is read-only, too, and must stay: dropping it crashed the daemon.
func TestCleanRanges(t *testing.T) {
	const smaps = `00400000-00500000 r-xp 00000000 fe:00 12 /bin/minik8sd
Size:               1024 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
00500000-00600000 r--p 00100000 fe:00 12 /bin/minik8sd
Anonymous:             4 kB
00600000-00700000 rw-p 00200000 fe:00 12 /bin/minik8sd
Anonymous:             0 kB
00700000-00800000 r--s 00000000 fe:00 14 /var/lib/minik8s/etcd/member/snap/db
Anonymous:             0 kB
00800000-00900000 r--p 00400000 fe:00 12 /bin/minik8sd
Anonymous:             0 kB
00900000-00a00000 rw-p 00000000 00:00 0
Anonymous:             0 kB
00a00000-00b00000 r-xp 00000000 00:00 0                                  [vdso]
Anonymous:             0 kB
`
	want := []addresses{{0x400000, 0x500000, "/bin/minik8sd"}, {0x700000, 0x800000, "/var/lib/minik8s/etcd/member/snap/db"}, {0x800000, 0x900000, "/bin/minik8sd"}}
	if got := cleanRanges(smaps); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

// Memory is given back once after each busy time, soon if much was done, and not at every collection without one.
func TestRest(t *testing.T) {
	const s, m = time.Second, time.Minute
	now := time.Unix(0, 0)
	r := rest{last: now}
	for i, c := range []struct {
		after      time.Duration
		over, soon bool
	}{
		{s, false, false}, {2 * m, true, false}, {2 * m, false, false}, {2 * m, false, false},
		{m, false, false}, {s, false, false}, {2 * m, true, false}, {2 * m, false, false},
		// A burst; then somebody gives back; then nothing.
		{m, false, false}, {s, false, false}, {s, false, false}, {s, false, true}, {s, false, true}, {-1, false, false}, {2 * m, false, false},
		// Collections now and then are none.
		{m, false, false}, {9 * s, false, false}, {9 * s, false, false}, {9 * s, false, false}, {9 * s, false, false}, {9 * s, false, false}, {2 * m, true, false},
	} {
		if c.after < 0 { // the pause has come
			now = now.Add(pause)
			r.gaveBack(now, true)
			c.after = 10 * time.Millisecond // its own collection
		}
		now = now.Add(c.after)
		over, soon := r.collected(now)
		if over != c.over || soon != c.soon {
			t.Errorf("collection %d, after %s: %t, %t", i, c.after, over, soon)
		}
		if over {
			r.gaveBack(now.Add(10*time.Millisecond), false)
		}
	}
}

// The start is a burst: memory is given back after it even if there were few collections, and only once.
func TestRestAfterTheStart(t *testing.T) {
	now := time.Unix(0, 0)
	r := started(now)
	if _, soon := r.collected(now.Add(2 * time.Second)); !soon {
		t.Error("the first collection does not put off the end of the start")
	}
	r.gaveBack(now.Add(10*time.Second), false)
	if over, soon := r.collected(now.Add(2 * time.Minute)); over || soon {
		t.Errorf("afterwards: %t, %t", over, soon)
	}
}

// The program goes on after its pages are dropped.
func TestDropFiles(t *testing.T) {
	for range 3 {
		if err := dropFiles(); err != nil {
			t.Fatal(err)
		}
	}
}

// A file that is mapped, as a database is, leaves the memory and is whole afterwards. If another one has its range by then, that loses nothing.
func TestDropOfARangeThatMoves(t *testing.T) {
	const size = 4 << 20
	path := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(path, bytes.Repeat([]byte("file"), size/4), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	mapped, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mapped) //nolint:errcheck // the test is over
	whole := func(b []byte, word string) bool { return bytes.Equal(b, bytes.Repeat([]byte(word), len(b)/4)) }
	var on unix.Statfs_t
	if err := unix.Statfs(path, &on); err != nil {
		t.Fatal(err)
	}
	if on.Type == unix.TMPFS_MAGIC {
		t.Skip("files of a tmpfs are memory themselves")
	}
	if !whole(mapped, "file") { // which also brings it into memory
		t.Fatal("the mapping is not the file")
	}
	before := resident(t, path)
	if err := dropFiles(); err != nil {
		t.Fatal(err)
	}
	if after := resident(t, path); before < size/1024/2 || after > before/4 {
		t.Errorf("%d KiB in memory, and then %d", before, after)
	}
	if !whole(mapped, "file") {
		t.Error("the file is not whole afterwards")
	}

	other, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	copy(other, bytes.Repeat([]byte("heap"), size/4))
	start := uintptr(unsafe.Pointer(unsafe.SliceData(other)))
	r := addresses{start: start, end: start + size, file: path}
	if err := r.drop(false); err != nil {
		t.Error(err)
	}
	if !whole(other, "heap") {
		t.Error("memory that is another's by now was lost")
	}
	if err := unix.Munmap(other); err != nil {
		t.Fatal(err)
	}
	if err := r.drop(false); err != nil {
		t.Errorf("a range that nobody has any more: %v", err)
	}
}

// resident is how many KiB of a mapped file are in memory.
func resident(t *testing.T, path string) (n int) {
	t.Helper()
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(smaps), path+"\n")
	_, rest, _ = strings.Cut(rest, "Rss:")
	if _, err := fmt.Sscan(rest, &n); !found || err != nil {
		t.Fatal("the mapping is not in smaps: ", err)
	}
	return n
}
