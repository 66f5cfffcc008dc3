package chroot

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// program marks the test binary's run inside a chroot: it leaves it and says where it is.
const program = "MINIK8S_TEST_CHROOT"

func TestMain(m *testing.M) {
	if os.Getenv(program) == "" {
		os.Exit(m.Run())
	}
	if err := say(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// earlier is the process whose namespace is to be entered, if there is one.
func earlier() []int {
	pid, err := strconv.Atoi(os.Getenv(program))
	if err != nil {
		return nil
	}
	return []int{1, pid}
}

// say names the files at the root, at the root of the mount namespace, and the working directory.
func say() error {
	if err := Leave(earlier); err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	fmt.Println("pid", os.Getpid(), "in", dir, "args", len(os.Args), names())
	runtime.LockOSThread() // which becomes another than the rest of the program
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return err
	}
	own, err := os.Open("/proc/thread-self/ns/mnt")
	if err != nil {
		return err
	}
	if err := unix.Setns(int(own.Fd()), unix.CLONE_NEWNS); err != nil {
		return err
	}
	fmt.Println("namespace", names())
	if os.Getenv(program) == "stay" {
		if err := unix.Mount("marked", "/work", "tmpfs", 0, ""); err != nil {
			return err
		}
		if err := os.Mkdir("/work/mounted", 0o755); err != nil {
			return err
		}
		fmt.Println("stays")
		_, err := os.Stdin.Read(make([]byte, 1))
		return err
	}
	_, err = os.Stat("/work/mounted")
	fmt.Println("mounted", err == nil)
	return nil
}

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
	copyProgram(t, filepath.Join(dir, "test"))
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
	cmd.Env, cmd.Dir = []string{program + "=" + what}, "/work"
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

func copyProgram(t *testing.T, to string) {
	t.Helper()
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close() //nolint:errcheck // it is read
	f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(f, from); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
