package memory

import (
	"reflect"
	"testing"
	"time"
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
	want := []addresses{{0x400000, 0x500000}, {0x700000, 0x800000}, {0x800000, 0x900000}}
	if got := cleanRanges(smaps); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %x, want %x", got, want)
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
