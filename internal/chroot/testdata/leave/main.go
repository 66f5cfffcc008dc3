// Leave is what the tests run inside a chroot: it leaves it and says where it is.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"minik8s/internal/chroot"
)

// what says what is to be done: leave, stay, or the process whose namespace is to be entered.
var what = os.Getenv("MINIK8S_TEST_CHROOT")

func main() {
	if err := say(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// earlier is the process whose namespace is to be entered, if there is one.
func earlier() []int {
	pid, err := strconv.Atoi(what)
	if err != nil {
		return nil
	}
	return []int{1, pid}
}

// say names the files at the root, at the root of the mount namespace, and the working directory.
func say() error {
	if err := chroot.Leave(earlier); err != nil {
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
	if what == "stay" {
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

// names are the files at the root.
func names() []string {
	entries, _ := os.ReadDir("/") //nolint:errcheck // none are none
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}
