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
	if err := enter(); err != nil {
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
			dir := t.TempDir()
			for _, sub := range []string{"proc", "work"} {
				if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			mount := func(source, target, fstype string, flags uintptr) {
				if err := unix.Mount(source, target, fstype, flags, ""); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { unix.Unmount(target, unix.MNT_DETACH) }) //nolint:errcheck // a test's
			}
			if strings.Contains(kind, "mount") {
				mount(dir, dir, "", unix.MS_BIND)
			}
			if strings.Contains(kind, "shared") {
				if err := unix.Mount("", dir, "", unix.MS_SHARED, ""); err != nil {
					t.Fatal(err)
				}
			}
			mount("proc", filepath.Join(dir, "proc"), "proc", 0)
			copyProgram(t, filepath.Join(dir, "test"))
			cmd := exec.Command("/test", "one", "two")
			cmd.Env = []string{program + "=leave"}
			cmd.Dir = "/work"
			cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: dir}
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

// A second program enters the namespace of the first, as long as that lives, and finds its mounts.
func TestLeaveAgain(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a chroot needs root")
	}
	dir := t.TempDir()
	for _, sub := range []string{"proc", "work"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount("proc", filepath.Join(dir, "proc"), "proc", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(filepath.Join(dir, "proc"), unix.MNT_DETACH) }) //nolint:errcheck // a test's
	copyProgram(t, filepath.Join(dir, "test"))
	start := func(what string) *exec.Cmd {
		cmd := exec.Command("/test")
		cmd.Env = []string{program + "=" + what}
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: dir, Pdeathsig: syscall.SIGKILL}
		return cmd
	}
	first := start("stay")
	in, err := first.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := first.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(said); lines.Scan() && lines.Text() != "stays"; {
	}
	second := func(want string) {
		t.Helper()
		out, err := start(strconv.Itoa(first.Process.Pid)).CombinedOutput()
		if err != nil || !strings.HasSuffix(string(out), want+"\n") {
			t.Errorf("%v: %s", err, out)
		}
	}
	second("mounted true")
	in.Close()   //nolint:errcheck // the program ends
	first.Wait() //nolint:errcheck // of the end of its input
	second("mounted false")
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
