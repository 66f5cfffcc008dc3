package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// keepers is the cgroup of the processes that stay with containers: beside the root, with the same weight as all pods
// together. A process that reaps another spins in the kernel (shrink_dcache_parent) until that one's last thread, which
// is in the pod's cgroup, has released its files in /proc. In a cgroup within the root, where it would weigh 512 times
// what all BestEffort pods do, it kept that thread from running: 100 pods took up to 28 s to be gone.
func (m *Manager) keepers() string { return m.root + "-keepers" }

// AddKeeper moves a process that stays with containers, and what it forks later, out of the cgroup in which it was
// started, in every hierarchy: killing or limiting that cgroup, as systemd does with a service's, must not affect pods.
func (m *Manager) AddKeeper(pid int) error {
	h, err := m.mounted()
	if err != nil {
		return err
	}
	return errors.Join(h.join(m.keepers(), pid), h.lower(m.keepers()))
}

// Keepers returns the process ids of those that AddKeeper has moved, and of what they have forked; none if that cannot
// be read.
func (m *Manager) Keepers() []int {
	h, err := m.mounted()
	if err != nil {
		return nil
	}
	var out []int
	for _, dir := range h.dirs(m.keepers()) {
		out = append(out, processes(dir)...)
	}
	return out
}

// join continues after a hierarchy that refuses: the named one, which systemd uses, may be writable while a
// controller is not.
func (l legacy) join(path string, pid int) error {
	var errs []error
	for _, mount := range l.mounts() {
		errs = append(errs, joinDir(mount, path, pid))
	}
	return errors.Join(errs...)
}

func (u unified) join(path string, pid int) error { return joinDir(u.mount, path, pid) }

func joinDir(mount, path string, pid int) error {
	dir := mount
	for part := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		above := dir
		dir = filepath.Join(dir, part)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		// In v1 no process may enter a cgroup whose cpuset is empty.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			if err := inherit(above, dir, file); err != nil {
				return err
			}
		}
	}
	err := setting{file: "cgroup.procs", value: strconv.Itoa(pid)}.write(dir)
	if errors.Is(err, syscall.ESRCH) {
		return nil // it has ended
	}
	if err != nil {
		return fmt.Errorf("cgroup %s: %w", dir, err)
	}
	return nil
}

// inherit gives a cgroup its parent's value if it has none.
func inherit(above, dir, file string) error {
	have, err := os.ReadFile(filepath.Join(dir, file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || strings.TrimSpace(string(have)) != "" {
		return err
	}
	value, err := os.ReadFile(filepath.Join(above, file))
	if err != nil || strings.TrimSpace(string(value)) == "" { // in v2 the file is empty where nothing is set
		return nil
	}
	return setting{file: file, value: strings.TrimSpace(string(value))}.write(dir)
}

// removeSoon removes a cgroup whose last processes are ending, and ends them if need be.
func removeSoon(dir string) error {
	var err error
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if err = removeTree(dir); !errors.Is(err, syscall.EBUSY) {
			return err
		}
	}
	return err
}
