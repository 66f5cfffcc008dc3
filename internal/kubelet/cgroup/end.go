package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Dirs are the directories of a cgroup, by its path, in every hierarchy; none if that is not known.
func (m *Manager) Dirs(path string) []string {
	h, err := m.mounted()
	if err != nil {
		return nil
	}
	return h.dirs(path)
}

// Processes are those in a cgroup and in the ones below it, by the cgroup's directories in the hierarchies: a program that
// makes cgroups of its own may have moved its children.
func Processes(dirs []string) []int {
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil {
			return processesBelow(dir)
		}
	}
	return nil
}

func processesBelow(dir string) []int {
	pids := processes(dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return pids
	}
	for _, e := range entries {
		if e.IsDir() {
			pids = append(pids, processesBelow(filepath.Join(dir, e.Name()))...)
		}
	}
	return pids
}

// Signal signals every process in a cgroup and the ones below it, by its directories in the hierarchies. A number that is
// another's by now is left alone.
func Signal(dirs []string, sig unix.Signal) {
	signalThose(sig, func() []int { return Processes(dirs) })
}

// signalThose signals the processes that are in a list, and still are when they have been opened.
func signalThose(sig unix.Signal, list func() []int) {
	opened := map[int]int{}
	for _, pid := range list() {
		if fd, err := unix.PidfdOpen(pid, 0); err == nil {
			opened[pid] = fd
		}
	}
	for _, pid := range list() {
		if fd, ok := opened[pid]; ok {
			unix.PidfdSendSignal(fd, sig, nil, 0) //nolint:errcheck // it may end now
		}
	}
	for _, fd := range opened {
		unix.Close(fd) //nolint:errcheck // it was only used to signal
	}
}

// Frozen reports whether a cgroup is frozen, by its directories in the hierarchies.
func Frozen(dirs []string) bool {
	for _, dir := range dirs {
		for file, frozen := range map[string]string{"freezer.state": "FROZEN", "cgroup.freeze": "1"} {
			if state, err := os.ReadFile(filepath.Join(dir, file)); err == nil && strings.TrimSpace(string(state)) == frozen {
				return true
			}
		}
	}
	return false
}

// Thaw lets a frozen cgroup run: in v1 a frozen process does not end, whoever kills it.
func Thaw(dirs []string) {
	for _, dir := range dirs {
		if f, err := os.OpenFile(filepath.Join(dir, "freezer.state"), os.O_WRONLY, 0); err == nil {
			f.WriteString("THAWED") //nolint:errcheck // who waits for the end of its processes says that they do not end
			f.Close()               //nolint:errcheck // as above
		}
	}
}

// End kills what is left in a cgroup and removes it, by its directories in the hierarchies. The error is EBUSY if a process
// does not end within seconds: it is stuck in the kernel.
func End(dirs []string) error {
	Thaw(dirs)
	var errs []error
	for _, dir := range dirs {
		err := removeTree(dir)
		if errors.Is(err, syscall.EBUSY) {
			err = removeSoon(dir)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
