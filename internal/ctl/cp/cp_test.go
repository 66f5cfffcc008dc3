package cp

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPackAndUnpack(t *testing.T) {
	dir := t.TempDir()
	from := filepath.Join(dir, "from")
	for name, text := range map[string]string{"a": "one", "sub/b": "two", "sub/deep/c": strings.Repeat("x", 1<<20)} {
		file := filepath.Join(from, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a", filepath.Join(from, "link")); err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if err := pack(&archive, from, "name"); err != nil {
		t.Fatal(err)
	}
	var notes []string
	to := filepath.Join(dir, "to")
	err := unpack(&archive, "name", to, func(f string, a ...any) { notes = append(notes, fmt.Sprintf(f, a...)) })
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(to, "sub", "deep", "c"))
	if err != nil || len(got) != 1<<20 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if st, err := os.Stat(filepath.Join(to, "a")); err != nil || st.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", st, err)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "name/link") {
		t.Errorf("notes: %q", notes)
	}
}

func TestAnArchiveCannotLeaveItsPlace(t *testing.T) {
	for _, h := range []tar.Header{
		{Name: "../evil", Typeflag: tar.TypeReg, Mode: 0o644},
		{Name: "name/../../evil", Typeflag: tar.TypeReg, Mode: 0o644},
		{Name: "/etc/evil", Typeflag: tar.TypeReg, Mode: 0o644},
		{Name: "names", Typeflag: tar.TypeReg, Mode: 0o644},
		{Name: "name/out/evil", Typeflag: tar.TypeReg, Mode: 0o644},
	} {
		dir := t.TempDir()
		place := filepath.Join(dir, "place")
		if err := os.MkdirAll(filepath.Join(place, "to"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(dir, filepath.Join(place, "to", "out")); err != nil { // as if a link had been there before
			t.Fatal(err)
		}
		var archive bytes.Buffer
		tw := tar.NewWriter(&archive)
		if err := tw.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		tw.Close()
		if err := unpack(&archive, "name", filepath.Join(place, "to"), t.Logf); err == nil {
			t.Errorf("%s was unpacked", h.Name)
		}
		if _, err := os.Stat(filepath.Join(dir, "evil")); err == nil {
			t.Errorf("%s was written outside", h.Name)
		}
	}
}

// Which arguments are paths of a container.
func TestPlaces(t *testing.T) {
	for arg, want := range map[string][2]string{
		"web:/etc/passwd": {"/etc/passwd", "web"}, "prod/web:x": {"x", "prod/web"}, "./a:b": {"./a:b", ""},
		"/a:b": {"/a:b", ""}, "file": {"file", ""}, "web:": {"", "web"},
	} {
		if file, pod := PodPath(arg); file != want[0] || pod != want[1] {
			t.Errorf("%s: %q of %q", arg, file, pod)
		}
	}
}
