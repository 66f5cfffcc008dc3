package results

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is still to come is compared with what is free, less a reserve and what other jobs were promised.
func TestRoom(t *testing.T) {
	const gib = 1 << 30
	for _, x := range []struct {
		name             string
		free, size, need int64
		promised         int64
		fits             bool
	}{
		{"a large disk", 100 * gib, 1000 * gib, 49 * gib, 0, true},
		{"a twentieth stays free", 100 * gib, 1000 * gib, 51 * gib, 0, false},
		{"at least a GiB stays free", 5 * gib, 10 * gib, 4*gib + 1, 0, false},
		{"just so", 5 * gib, 10 * gib, 4 * gib, 0, true},
		{"what is promised is not there", 5 * gib, 10 * gib, 3 * gib, 2 * gib, false},
		{"a tiny disk", 60 << 20, 64 << 20, 44 << 20, 0, true},
		{"a tiny disk, too much", 60 << 20, 64 << 20, 45 << 20, 0, false},
		{"a full disk, and nothing to come", 0, 10 * gib, 0, 0, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := New(filepath.Join(t.TempDir(), "not", "made"))
			s.space = func(string) (int64, int64, error) { return x.free, x.size, nil }
			if x.promised > 0 {
				r, err := s.Room("other", []File{{Path: "b", Size: x.promised}, {Path: "c", Size: 5}})
				if err != nil {
					t.Fatal(err)
				}
				r.Used("c")
				defer r.GiveBack()
			}
			r, err := s.Room("u", []File{{Path: "a", Size: x.need}})
			var full *FullError
			if x.fits != (err == nil) || err != nil && (!errors.As(err, &full) || full.Need != x.need || full.Free != x.free-x.promised) {
				t.Fatalf("%v", err)
			}
			if err == nil {
				r.GiveBack()
			}
			if _, err := os.Stat(s.dir); err == nil {
				t.Error("the folder is made to measure its disk")
			}
		})
	}
}

// What has come already, in this try or before, needs no room; nor does what was given back.
func TestRoomForTheRest(t *testing.T) {
	s := New(t.TempDir())
	s.space = func(string) (int64, int64, error) { return 8 << 20, 16 << 20, nil } // 4 MiB stay free
	in, err := s.Incoming(t.Context(), "u")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close() //nolint:errcheck // of a test
	if err := in.WriteFile("a", make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	list := []File{{Path: "a", Size: 3 << 20}, {Path: "b", Size: 3 << 20}}
	for range 2 {
		r, err := s.Room("u", list)
		if err != nil {
			t.Fatal(err)
		}
		r.GiveBack()
	}
	_, err = s.Room("v", list)
	if err == nil || !strings.Contains(err.Error(), "6.0 MiB are still to come, and the disk has 8.0 MiB free, of which 4.0 MiB stay so") {
		t.Error(err)
	}
}
