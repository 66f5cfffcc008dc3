package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
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

// End kills what is left in a cgroup and removes it, by its directories in the hierarchies. The error is EBUSY if a process
// does not end within seconds: it is stuck in the kernel.
func End(dirs []string) error {
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
