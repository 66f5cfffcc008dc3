package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// du is what the tool says, in the same units.
func du(t *testing.T, dir string) (u Use) {
	t.Helper()
	for _, x := range []struct {
		option string
		to     *uint64
	}{{"--block-size=1", &u.Bytes}, {"--inodes", &u.Inodes}} {
		out, err := exec.Command("du", "-sx", x.option, dir).Output()
		must(t, err)
		_, err = fmt.Sscan(string(out), x.to)
		must(t, err)
	}
	return u
}

func TestTreeIsWhatDuSays(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, size int) {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o600))
	}
	check := func(what string) {
		t.Helper()
		got, err := Tree(t.Context(), dir)
		must(t, err)
		if want := du(t, dir); got != want {
			t.Errorf("%s: %+v, du says %+v", what, got, want)
		}
	}
	check("nothing")
	write("a", 1)
	write("b/c/d", 100_000)
	for i := range 600 {
		write(fmt.Sprintf("many/%d", i), i)
	}
	check("files")
	for i := range 7 {
		must(t, os.Link(filepath.Join(dir, "b/c/d"), filepath.Join(dir, fmt.Sprintf("again%d", i))))
	}
	check("names of one file")
	must(t, os.Symlink("/usr", filepath.Join(dir, "link")))
	must(t, os.Symlink(strings.Repeat("x", 3000), filepath.Join(dir, "long")))
	f, err := os.Create(filepath.Join(dir, "sparse"))
	must(t, err)
	must(t, f.Truncate(1<<30))
	must(t, f.Close())
	must(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	check("links, a hole and a pipe")
	if os.Geteuid() == 0 {
		must(t, os.Mkdir(filepath.Join(dir, "mounted"), 0o755))
		must(t, unix.Mount("tmpfs", filepath.Join(dir, "mounted"), "tmpfs", 0, ""))
		t.Cleanup(func() { unix.Unmount(filepath.Join(dir, "mounted"), unix.MNT_DETACH) }) //nolint:errcheck // a test's
		write("mounted/file", 1<<20)
		check("another file system in it")
	}
	for name, path := range map[string]string{"missing": filepath.Join(dir, "no"), "a link": filepath.Join(dir, "link"), "a file": filepath.Join(dir, "a")} {
		if _, err := Tree(t.Context(), path); err == nil || !gone(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Tree(t.Context(), filepath.Join(dir, "no")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// Deeper than a path can be long, and than directories are counted.
func TestDeepTree(t *testing.T) {
	dir := t.TempDir()
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(t, err)
	name := strings.Repeat("d", 100)
	for range maxDepth + 100 {
		must(t, unix.Mkdirat(fd, name, 0o755))
		next, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		must(t, err)
		must(t, unix.Close(fd))
		fd = next
	}
	must(t, unix.Close(fd))
	got, err := Tree(t.Context(), dir)
	if err != nil || got.Inodes != maxDepth+1 {
		t.Errorf("%+v, %v", got, err)
	}
}

// Whatever is done to files meanwhile, a walk ends, without an error, and finds what stays.
func TestTreeThatChanges(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "stays"), make([]byte, 1<<20), 0o600))
	done := make(chan struct{})
	var others sync.WaitGroup
	for i := range 4 {
		others.Go(func() {
			own := filepath.Join(dir, fmt.Sprint(i))
			for turn := 0; ; turn++ {
				select {
				case <-done:
					return
				default:
				}
				os.MkdirAll(filepath.Join(own, "a/b/c"), 0o755)                           //nolint:errcheck // seen or not
				os.WriteFile(filepath.Join(own, "a/b/f"), make([]byte, turn%5000), 0o600) //nolint:errcheck // seen or not
				os.Symlink("/", filepath.Join(own, "a/b/root"))                           //nolint:errcheck // seen or not
				os.RemoveAll(filepath.Join(own, "a"))                                     //nolint:errcheck // seen or not
				os.Symlink("/", filepath.Join(own, "a"))                                  //nolint:errcheck // seen or not
				os.Remove(filepath.Join(own, "a"))                                        //nolint:errcheck // seen or not
			}
		})
	}
	for range 200 {
		got, err := Tree(t.Context(), dir)
		if err != nil || got.Bytes < 1<<20 || got.Bytes > 2<<20 || got.Inodes > 40 {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	close(done)
	others.Wait()
}

func TestOf(t *testing.T) {
	dir := t.TempDir()
	got, err := Of(dir)
	must(t, err)
	out, err := exec.Command("df", "--output=source,target", dir).Output()
	must(t, err)
	words := strings.Fields(string(out))
	if got.Device != words[len(words)-2] || got.MountPoint != words[len(words)-1] || got.Capacity == 0 || got.Used() == 0 || got.Used() > got.Capacity {
		t.Errorf("%+v, df says %v", got, words)
	}
}

// Questions are answered with what there is; a measuring is made when somebody asks, and not too often.
func TestMeter(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "layer"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "layer", "file"), make([]byte, 8192), 0o600))
	must(t, os.Mkdir(filepath.Join(dir, "volume"), 0o755))
	synctest.Test(t, func(t *testing.T) {
		reads, takes := 0, time.Duration(0)
		m := New(dir, func(context.Context) ([]Place, error) {
			reads++
			time.Sleep(takes)
			return []Place{{Kind: Layer, PodUID: "u", ContainerID: "c", Dir: filepath.Join(dir, "layer")},
				{Kind: Log, PodUID: "u", ContainerID: "c", Dir: filepath.Join(dir, "no")},
				{Kind: Volume, PodUID: "u", Name: "v", Dir: filepath.Join(dir, "volume")}}, nil
		})
		ask := func(want bool, wantReads int) *Reading {
			t.Helper()
			r := m.Reading()
			synctest.Wait()
			if (r != nil) != want || reads != wantReads {
				t.Errorf("known: %v, want %v; %d measurings, want %d", r != nil, want, reads, wantReads)
			}
			return r
		}
		ask(false, 1)
		r := ask(true, 1)
		if c := r.Containers["c"]; c.Layer.Inodes != 2 || c.Layer.Bytes < 8192 || c.Log != (Use{}) {
			t.Errorf("%+v", c)
		}
		if v := r.Volumes["u"]; len(v) != 1 || v[0].Name != "v" || v[0].Inodes != 1 || v[0].FileSystem.Capacity == 0 || r.Data.Capacity == 0 {
			t.Errorf("%+v of %+v", v, r.Data)
		}
		time.Sleep(interval - time.Second)
		ask(true, 1)
		time.Sleep(time.Second)
		takes = 2 * time.Second
		ask(true, 2)
		ask(true, 2) // while it measures
		time.Sleep(interval + takes)
		ask(true, 2) // it took so long that the next is later
		time.Sleep(share * takes)
		takes = 20 * time.Second
		ask(true, 3)
		time.Sleep(longest - time.Second)
		ask(true, 3)
		time.Sleep(takes + time.Second)
		takes = 2 * time.Second
		ask(true, 4) // however long it took
		time.Sleep(takes + time.Second)
		time.Sleep(time.Hour)
		ask(false, 5)
		time.Sleep(takes + time.Second)
		ask(true, 5)
	})
}

// A place that takes too long is not known, others are, and are measured before it the next time.
func TestSlowPlace(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		m := New(dir, func(context.Context) ([]Place, error) {
			return []Place{{Kind: Layer, PodUID: "wild", ContainerID: "w", Dir: "slow"}, {Kind: Log, PodUID: "wild", ContainerID: "w", Dir: "w"},
				{Kind: Layer, PodUID: "u", ContainerID: "c", Dir: "c"}, {Kind: Log, PodUID: "u", ContainerID: "c", Dir: "log"}}, nil
		})
		var order []string
		m.walk = func(ctx context.Context, dir string) (Use, error) {
			order = append(order, dir)
			if dir == "slow" {
				<-ctx.Done()
				return Use{}, ctx.Err()
			}
			return Use{Bytes: 5, Inodes: 1}, nil
		}
		for _, want := range []string{"[slow w c log]", "[w c log slow]"} {
			order = nil
			m.Reading()
			time.Sleep(patience + time.Second)
			r := m.Reading()
			if c := r.Containers["c"]; c == nil || c.Layer.Bytes != 5 || c.Log.Bytes != 5 || r.Containers["w"] != nil || !r.Partly["wild"] || r.Partly["u"] {
				t.Errorf("%+v", r)
			}
			if got := fmt.Sprint(order); got != want {
				t.Errorf("measured in the order %s, want %s", got, want)
			}
			time.Sleep(longest)
		}
	})
}

// What the runtime keeps is measured beside all else; while that takes too long, it is not known.
func TestImages(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "layer"), make([]byte, 100<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	m := New(dir, func(context.Context) ([]Place, error) { return []Place{{Kind: Images, Dir: dir}}, nil })
	r := m.read(t.Context())
	if r == nil || r.Images == nil || r.Images.Bytes < 100<<10 || len(r.Containers)+len(r.Partly) != 0 {
		t.Fatalf("%+v", r)
	}
	m.walk = func(context.Context, string) (Use, error) { return Use{}, context.DeadlineExceeded }
	if r := m.read(t.Context()); r == nil || r.Images != nil || !m.slow[dir] || len(r.Containers)+len(r.Partly) != 0 {
		t.Errorf("%+v", r)
	}
}
