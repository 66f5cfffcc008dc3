package roles_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// cleaned is what "minik8sd clean" says of a directory.
func cleaned(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(path, append([]string{"clean", "--data-dir", dir}, args...)...).CombinedOutput()
	return string(out), err
}

// tree is all there is below a directory.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		out = append(out, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Files that are not minik8s's are not touched, by whatever path the directory is named.
func TestCleanRefusesWhatIsNotOurs(t *testing.T) {
	needRoot(t)
	home := t.TempDir()
	for _, name := range []string{".bashrc", "thesis.tex", "bin/tool", "images/cat.png"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, name), []byte("precious"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(home, link); err != nil {
		t.Fatal(err)
	}
	before := tree(t, home)
	for _, dir := range []string{home, link, link + "/../" + filepath.Base(link) + "/.", "/"} {
		for _, args := range [][]string{nil, {"--yes"}, {"--dry-run"}} {
			out, err := cleaned(t, dir, args...)
			if err == nil || !strings.Contains(out, "no") {
				t.Errorf("clean of %s %v: %v: %s", dir, args, err, out)
			}
			if dir != "/" && !strings.Contains(out, "thesis.tex") {
				t.Errorf("it is not said what is in %s: %s", dir, out)
			}
		}
	}
	p := &process{t: t, args: []string{"--data-dir", link, "--api-port=7443", "--kubelet-port=0"}}
	p.fails("thesis.tex", "--data-dir")
	if after := tree(t, home); !slices.Equal(before, after) {
		t.Errorf("there was %v, there is %v", before, after)
	}
	if out, err := cleaned(t, filepath.Join(home, "no")); err != nil {
		t.Errorf("where nothing is: %v: %s", err, out)
	}
}

// In a directory that the daemon used through a link, with a disk mounted for it and a link in it, what the daemon
// made is removed and everything else stays. What will be removed is printed before, by --dry-run too, and on a
// terminal there is a question.
func TestClean(t *testing.T) {
	needRoot(t)
	link := filepath.Join(t.TempDir(), "data") // it is there until the process is cleaned up
	p := newProcess(t)
	if err := os.Symlink(p.dir, link); err != nil {
		t.Fatal(err)
	}
	p.args[slices.Index(p.args, "--data-dir")+1] = link
	etcd, elsewhere := filepath.Join(p.dir, "etcd"), t.TempDir()
	if err := os.Mkdir(etcd, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", etcd, "tmpfs", 0, "size=256m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.kill(); syscall.Unmount(etcd, syscall.MNT_DETACH); os.Remove(etcd) }) //nolint:errcheck // it may have gone
	if err := os.Symlink(elsewhere, filepath.Join(p.dir, "pods-logs")); err != nil {
		t.Fatal(err)
	}
	c := p.up()
	p.create(c, shell("web", forever))
	p.running(c, "web")
	if out, err := cleaned(t, link); err == nil || !strings.Contains(out, "another minik8sd") {
		t.Errorf("under a daemon that runs: %v: %s", err, out)
	}
	p.kill()
	if err := os.WriteFile(filepath.Join(elsewhere, "kept"), nil, 0o600); err != nil {
		t.Fatal(err)
	}

	foreign := filepath.Join(p.dir, "notes.txt")
	if err := os.WriteFile(foreign, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := cleaned(t, p.dir); err == nil || !strings.Contains(out, "notes.txt") {
		t.Errorf("with a foreign file: %v: %s", err, out)
	}
	if err := os.Remove(foreign); err != nil {
		t.Fatal(err)
	}
	out, err := cleaned(t, p.dir, "--dry-run")
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, says := range []string{"default/web", "cgroup /" + filepath.Base(p.dir), "mount " + filepath.Join(p.dir, "run"), filepath.Join(p.dir, "pki"),
		"what is in " + elsewhere + " stays", "leaves " + filepath.Join(p.dir, "images")} {
		if !strings.Contains(out, says) {
			t.Errorf("--dry-run says nothing of %q: %s", says, out)
		}
	}
	if out, err := onTerminal(t, "n\n", "clean", "--data-dir", p.dir); err == nil || !strings.Contains(out, "Remove all this?") {
		t.Errorf("on a terminal: %v: %s", err, out)
	}
	// A shell that starts a command is two for a moment.
	p.outlived("the pod runs on after a look and a no", func() bool { return sleepers(p.dir) == 1 })
	if out, err := onTerminal(t, "y\n", "clean", "--data-dir", p.dir); err != nil {
		t.Fatalf("on a terminal: %v: %s", err, out)
	}
	if sleepers(p.dir) != 0 {
		t.Error("the pod still runs")
	}
	if _, err := os.Stat(filepath.Join(elsewhere, "kept")); err != nil {
		t.Errorf("what a link led to is gone: %v", err)
	}
	if left := tree(t, etcd); len(left) != 1 {
		t.Errorf("on the disk that was lent is %v", left)
	}
	if err := syscall.Unmount(etcd, 0); err != nil {
		t.Errorf("the disk that was lent: %v", err)
	}
	if err := os.Remove(etcd); err != nil {
		t.Error(err)
	}
}

// onTerminal runs the daemon's program on a terminal on which somebody types.
func onTerminal(t *testing.T, types string, args ...string) (string, error) {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close() //nolint:errcheck // nothing is lost
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close() //nolint:errcheck // as above
	if _, err := master.WriteString(types); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Stdin = slave
	out, err := cmd.CombinedOutput()
	return string(out), err
}
