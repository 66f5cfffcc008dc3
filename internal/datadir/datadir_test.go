package datadir_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"minik8s/internal/datadir"
)

// plant makes a directory with these entries; those that end in a slash are directories.
func plant(t *testing.T, entries ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, e := range entries {
		path := filepath.Join(dir, e)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if strings.HasSuffix(e, "/") {
			err = os.MkdirAll(path, 0o755)
		} else {
			err = os.WriteFile(path, []byte("x"), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// What may become a data directory, and what clean may empty.
func TestWhatIsOurs(t *testing.T) {
	for _, x := range []struct {
		name          string
		entries       []string
		opens, cleans bool
		says          string // of the refusals
	}{
		{"empty", nil, true, true, ""},
		{"images were put there", []string{"images/x.tar"}, true, true, ""},
		{"a disk of its own", []string{"lost+found/", "images/"}, true, true, ""},
		{"disks were prepared", []string{"etcd/", "containerd/lost+found/"}, true, true, ""},
		{"a home directory", []string{".bashrc", "thesis.tex", "bin/tool"}, false, false, "thesis.tex"},
		{"names that are ours by chance", []string{"bin/tool", "images/cat.png"}, false, false, "bin"},
		{"of a version without marker", []string{"minik8sd.lock", "pki/ca.crt", "etcd/member/x", "containerd/x", "run/"}, true, true, ""},
		{"a first start cut off", []string{"minik8sd.lock"}, true, true, ""},
		{"the same with somebody's file", []string{"minik8sd.lock", "pki/ca.crt", "etcd/member/x", "notes.txt"}, true, false, "notes.txt"},
		{"only a lock and somebody's file", []string{"minik8sd.lock", "notes.txt"}, false, false, "notes.txt"},
	} {
		t.Run(x.name, func(t *testing.T) {
			dir := plant(t, x.entries...)
			d, err := datadir.Look(dir)
			if err != nil {
				t.Fatal(err)
			}
			c, err := d.Contents()
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Refusal(c); (err == nil) != x.cleans || err != nil && !strings.Contains(err.Error(), x.says) {
				t.Errorf("clean: %v", err)
			}
			before, err := os.Stat(dir)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = datadir.Open(dir); (err == nil) != x.opens || err != nil && (!strings.Contains(err.Error(), x.says) || !strings.Contains(err.Error(), "--data-dir")) {
				t.Errorf("start: %v", err)
			}
			after, err := os.Stat(dir)
			if err != nil {
				t.Fatal(err)
			}
			if !x.opens && after.Mode() != before.Mode() {
				t.Errorf("what was refused has become %v", after.Mode())
			}
		})
	}
}

// The marker says what clean needs to know, whatever name the directory is called by.
func TestMarker(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "data")
	d, err := datadir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, cgroup := range []string{"/a", "", "/b", "/a"} {
		if err := d.Mark(cgroup); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	again, err := datadir.Open(link) // somebody's file beside ours keeps nothing from starting
	if err != nil {
		t.Fatal(err)
	}
	if !again.Marker.Made || again.Real != dir || again.Path != link || !slices.Equal(again.Marker.Cgroups, []string{"/a", "/b"}) || again.Marker.Path != dir {
		t.Errorf("%+v", again)
	}
	c, err := again.Contents()
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Refusal(c); err == nil || !strings.Contains(err.Error(), "notes.txt") {
		t.Errorf("somebody's file would go: %v", err)
	}
	if _, err := datadir.Look(filepath.Join(dir, "no")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestAnotherUsersDirectory(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("giving a directory away needs root")
	}
	dir := t.TempDir()
	if err := os.Chown(dir, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if _, err := datadir.Open(dir); err == nil || !strings.Contains(err.Error(), "65534") {
		t.Errorf("opened: %v", err)
	}
}
