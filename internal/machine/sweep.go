package machine

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// sweep removes what an interrupted run (a panic, a timeout) has left. It finds them by the directories in tmp:
// processes name them on their command lines, mounts are in them, and cgroups are named after them.
func sweep(tmp string) {
	defer os.RemoveAll(tmp) //nolint:errcheck // what cannot be removed stays visible
	kill(func(cmdline string) bool { return strings.Contains(cmdline, tmp) })
	dirs, _ := filepath.Glob(filepath.Join(tmp, "*")) //nolint:errcheck // the pattern is good
	for _, d := range dirs {
		base := filepath.Base(d)
		groups, _ := filepath.Glob("/sys/fs/cgroup/*/" + base + "*") //nolint:errcheck // as above
		for _, g := range append(groups, "/sys/fs/cgroup/"+base) {
			removeCgroup(g)
		}
	}
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return
	}
	for _, line := range slices.Backward(strings.Split(strings.TrimSpace(string(data)), "\n")) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], tmp+"/") {
			unix.Unmount(f[4], unix.MNT_DETACH) //nolint:errcheck // as far as it goes
		}
	}
}

// kill ends the processes for whose command line meant is true.
func kill(meant func(cmdline string) bool) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") //nolint:errcheck // the pattern is good
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && meant(string(b)) {
			killPid(filepath.Base(filepath.Dir(f)))
		}
	}
}

func killPid(pid string) {
	if n, err := strconv.Atoi(pid); err == nil && n > 1 && n != os.Getpid() {
		unix.Kill(n, unix.SIGKILL) //nolint:errcheck // it may have ended
	}
}

// removeCgroup ends what runs in a cgroup and removes it from the leaves up. A cgroup can be removed only a moment
// after its last process has ended.
func removeCgroup(root string) {
	for range 100 {
		var dirs []string
		filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error { //nolint:errcheck // as far as it goes
			if err == nil && e.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		if len(dirs) == 0 {
			return
		}
		for _, d := range slices.Backward(dirs) {
			if b, err := os.ReadFile(filepath.Join(d, "cgroup.procs")); err == nil {
				for _, pid := range strings.Fields(string(b)) {
					killPid(pid)
				}
			}
			unix.Rmdir(d) //nolint:errcheck // tried again
		}
		time.Sleep(10 * time.Millisecond)
	}
}
