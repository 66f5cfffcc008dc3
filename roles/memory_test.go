package roles

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
00700000-00800000 r--p 00300000 fe:00 12 /bin/other
Anonymous:             0 kB
00800000-00900000 r--p 00400000 fe:00 12 /bin/minik8sd
Anonymous:             0 kB
00900000-00a00000 rw-p 00000000 00:00 0
Anonymous:             0 kB
`
	want := []addresses{{0x400000, 0x500000}, {0x800000, 0x900000}}
	if got := cleanRanges(smaps, "/bin/minik8sd"); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %x, want %x", got, want)
	}
}

// Memory is given back once after each busy time, not at every collection without one.
func TestRest(t *testing.T) {
	now := time.Unix(0, 0)
	r := rest{last: now}
	for i, c := range []struct {
		after time.Duration
		want  bool
	}{{time.Second, false}, {2 * time.Minute, true}, {2 * time.Minute, false}, {2 * time.Minute, false},
		{time.Minute, false}, {time.Second, false}, {2 * time.Minute, true}, {2 * time.Minute, false}} {
		now = now.Add(c.after)
		got := r.begins(now)
		if got != c.want {
			t.Errorf("collection %d, after %s: %t", i, c.after, got)
		}
		if got {
			r.ignore(now.Add(10 * time.Millisecond)) // its own collection
		}
	}
}

// The program goes on after its pages are dropped.
func TestDropProgram(t *testing.T) {
	for range 3 {
		if err := dropProgram(); err != nil {
			t.Fatal(err)
		}
	}
}
