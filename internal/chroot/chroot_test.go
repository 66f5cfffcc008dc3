package chroot

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// order is the variable that says to the program what it has to do.
const order = "MINIK8S_TEST_CHROOT"

// program is that of testdata/leave. It has to be static, which a test of the race detector is not.
var program = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "minik8s-chroot-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // what cannot be removed stays visible
	cmd := exec.Command("go", "build", "-o", dir+"/leave", "./testdata/leave")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return os.ReadFile(dir + "/leave")
})

// names are the files at the root.
func names() []string {
	entries, _ := os.ReadDir("/") //nolint:errcheck // none are none
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// A program in a chroot, a mounted one and a plain directory, finds itself in a namespace that has nothing else.
func TestLeave(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a chroot needs root")
	}
	for _, kind := range []string{"a directory", "a mount", "a shared mount", "no chroot"} {
		t.Run(kind, func(t *testing.T) {
			dir := newRoot(t)
			if strings.Contains(kind, "mount") {
				mount(t, dir, dir, "", unix.MS_BIND|unix.MS_REC)
			}
			if strings.Contains(kind, "shared") {
				if err := unix.Mount("", dir, "", unix.MS_SHARED, ""); err != nil {
					t.Fatal(err)
				}
			}
			cmd := in(dir, "leave")
			want := "[proc test work]"
			if kind == "no chroot" {
				cmd.Path, cmd.Dir, cmd.SysProcAttr = filepath.Join(dir, "test"), filepath.Join(dir, "work"), nil
				want = fmt.Sprint(names())
			}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if want := fmt.Sprintf("pid %d in %s args 3 %s\nnamespace %s\nmounted false\n", cmd.Process.Pid, cmd.Dir, want, want); string(out) != want {
				t.Errorf("it says\n%swant\n%s", out, want)
			}
			if kind == "a shared mount" { // what was done in there was not done out here
				if _, err := os.Stat(filepath.Join(dir, "proc", "self")); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A second program enters the namespace of the first, as long as that lives, and finds its mounts; not that of a program in
// another chroot.
func TestLeaveAgain(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a chroot needs root")
	}
	dir := newRoot(t)
	first, end := stay(t, dir)
	second := func(first int, want string) {
		t.Helper()
		out, err := in(dir, strconv.Itoa(first)).CombinedOutput()
		if err != nil || !strings.HasSuffix(string(out), want+"\n") {
			t.Errorf("%v: %s", err, out)
		}
	}
	second(first, "mounted true")
	end()
	second(first, "mounted false")
	stranger, end := stay(t, newRoot(t))
	second(stranger, "mounted false")
	end()
}

// newRoot makes a directory to chroot to, with the test's program as /test.
func newRoot(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, sub := range []string{"proc", "work"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	text, err := program()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "test"), text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	mount(t, "proc", filepath.Join(dir, "proc"), "proc", 0)
	return dir
}

func mount(t *testing.T, source, target, fstype string, flags uintptr) {
	t.Helper()
	if err := unix.Mount(source, target, fstype, flags, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(target, unix.MNT_DETACH) }) //nolint:errcheck // a test's
}

// in is the test's program in a chroot.
func in(dir, what string) *exec.Cmd {
	cmd := exec.Command("/test", "one", "two")
	cmd.Env, cmd.Dir = []string{order + "=" + what}, "/work"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: dir, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// stay starts a program that leaves a chroot, mounts something, and lives until end is called.
func stay(t *testing.T, dir string) (pid int, end func()) {
	t.Helper()
	cmd := in(dir, "stay")
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() {
		input.Close() //nolint:errcheck // the program ends
		cmd.Wait()    //nolint:errcheck // of the end of its input
	})
	t.Cleanup(end)
	for lines := bufio.NewScanner(said); lines.Scan() && lines.Text() != "stays"; {
	}
	return cmd.Process.Pid, end
}
