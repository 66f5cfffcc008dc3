package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"minik8s/internal/kubelet/cri"
)

// hierarchy is one version of cgroups.
type hierarchy interface {
	// ensure makes a cgroup, with its parents, and sets what is not 0 in res.
	ensure(path string, res cri.Resources) error
	// lower gives a cgroup half of the default CPU weight.
	lower(path string) error
	// join makes a cgroup without settings, with its parents, and moves a process there.
	join(path string, pid int) error
	// dirs are the directories of a cgroup, whether they exist or not.
	dirs(path string) []string
	// home is the directory, among those that ensure makes, that stands for a cgroup.
	home(path string) string
}

// limited are the v1 controllers that this package sets; the runtime makes the cgroups of the others.
var limited = []string{"cpu", "memory", "pids"}

// legacy is cgroup v1: the mount point of each controller, by its name. It includes those that are not limited: the
// runtime makes cgroups there, too, which have to be removed.
type legacy map[string]string

func (l legacy) home(path string) string {
	for _, controller := range limited {
		if mount, ok := l[controller]; ok {
			return filepath.Join(mount, path)
		}
	}
	return ""
}

func (l legacy) dirs(path string) []string {
	var out []string
	for _, mount := range l.mounts() {
		out = append(out, filepath.Join(mount, path))
	}
	return out
}

// mounts are the mount points, each once: several controllers may share one.
func (l legacy) mounts() []string {
	return slices.Compact(slices.Sorted(maps.Values(l)))
}

func (l legacy) ensure(path string, res cri.Resources) error {
	for _, controller := range limited {
		mount, ok := l[controller]
		if !ok {
			if controller == "memory" && res.MemoryLimit > 0 {
				return errors.New("the memory controller of cgroups is not there, so the memory limit cannot be kept")
			}
			continue
		}
		dir := filepath.Join(mount, path)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for _, s := range legacySettings(controller, res) {
			if err := s.write(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l legacy) lower(path string) error {
	mount, ok := l["cpu"]
	if !ok {
		return nil
	}
	return setting{file: "cpu.shares", value: "512"}.write(filepath.Join(mount, path))
}

// setting is a file of a cgroup and its content.
type setting struct {
	file, value string
	optional    bool // a kernel may lack the file
}

func (s setting) write(dir string) error {
	if s.optional {
		if _, err := os.Stat(filepath.Join(dir, s.file)); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	if err := os.WriteFile(filepath.Join(dir, s.file), []byte(s.value), 0o644); err != nil {
		return fmt.Errorf("setting %s to %s: %w", s.file, s.value, err)
	}
	return nil
}

func legacySettings(controller string, res cri.Resources) []setting {
	var out []setting
	switch controller {
	case "cpu":
		if res.CPUShares > 0 {
			out = append(out, setting{file: "cpu.shares", value: strconv.FormatUint(res.CPUShares, 10)})
		}
		if res.CPUQuota > 0 {
			out = append(out, setting{file: "cpu.cfs_period_us", value: strconv.FormatUint(res.CPUPeriod, 10)},
				setting{file: "cpu.cfs_quota_us", value: strconv.FormatInt(res.CPUQuota, 10)})
		}
	case "memory":
		if res.MemoryLimit > 0 {
			limit := strconv.FormatInt(res.MemoryLimit, 10)
			// The limit of memory and swap must not be less than that of memory, so it is lifted first.
			out = append(out, setting{file: "memory.memsw.limit_in_bytes", value: "-1", optional: true},
				setting{file: "memory.limit_in_bytes", value: limit},
				setting{file: "memory.memsw.limit_in_bytes", value: limit, optional: true})
		}
	case "pids":
		if res.PidsLimit > 0 {
			out = append(out, setting{file: "pids.max", value: strconv.FormatInt(res.PidsLimit, 10)})
		}
	}
	return out
}

// unified is cgroup v2.
type unified struct{ mount string }

func (u unified) lower(path string) error {
	return setting{file: "cpu.weight", value: "50", optional: true}.write(filepath.Join(u.mount, path))
}

func (u unified) home(path string) string { return filepath.Join(u.mount, path) }

func (u unified) dirs(path string) []string { return []string{filepath.Join(u.mount, path)} }

func (u unified) ensure(path string, res cri.Resources) error {
	dir := u.mount
	for _, part := range strings.Split(strings.Trim(path, "/"), "/") {
		if err := enable(dir); err != nil {
			return err
		}
		dir = filepath.Join(dir, part)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := enable(dir); err != nil { // the containers' cgroups need the controllers too
		return err
	}
	for _, s := range unifiedSettings(res) {
		if err := s.write(dir); err != nil {
			return err
		}
	}
	return nil
}

// enable enables every controller of dir for its children.
func enable(dir string) error {
	has, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	on, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	if err != nil {
		return err
	}
	enabled := map[string]bool{}
	for _, c := range strings.Fields(string(on)) {
		enabled[c] = true
	}
	var add []string
	for _, c := range strings.Fields(string(has)) {
		if !enabled[c] && (c == "cpu" || c == "memory" || c == "pids" || c == "cpuset" || c == "io") {
			add = append(add, "+"+c)
		}
	}
	if len(add) == 0 {
		return nil
	}
	return setting{file: "cgroup.subtree_control", value: strings.Join(add, " ")}.write(dir)
}

func unifiedSettings(res cri.Resources) []setting {
	var out []setting
	if res.CPUShares > 0 {
		// Kubernetes' mapping of 2..262144 onto 1..10000.
		weight := 1 + (min(max(res.CPUShares, 2), 262144)-2)*9999/262142
		out = append(out, setting{file: "cpu.weight", value: strconv.FormatUint(weight, 10)})
	}
	if res.CPUQuota > 0 {
		out = append(out, setting{file: "cpu.max", value: fmt.Sprintf("%d %d", res.CPUQuota, res.CPUPeriod)})
	}
	if res.MemoryLimit > 0 {
		out = append(out, setting{file: "memory.max", value: strconv.FormatInt(res.MemoryLimit, 10)},
			setting{file: "memory.swap.max", value: "0", optional: true})
	}
	if res.PidsLimit > 0 {
		out = append(out, setting{file: "pids.max", value: strconv.FormatInt(res.PidsLimit, 10)})
	}
	return out
}

// findHierarchy reads from /proc/self/mountinfo where cgroups are mounted.
func findHierarchy() (hierarchy, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return parseMounts(string(data))
}

func parseMounts(mountinfo string) (hierarchy, error) {
	v1, v2 := legacy{}, ""
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 3 {
			continue
		}
		switch right[0] {
		case "cgroup2":
			if v2 == "" {
				v2 = left[4]
			}
		case "cgroup":
			for _, option := range strings.Split(right[2], ",") {
				if option == "rw" || option == "ro" {
					continue
				}
				if _, known := v1[option]; !known {
					v1[option] = left[4]
				}
			}
		}
	}
	switch {
	case v1["memory"] != "" || v1["cpu"] != "":
		if v2 != "" {
			v1["unified"] = v2 // it has no controllers, but the runtime makes cgroups there, too
		}
		return v1, nil
	case v2 != "":
		return unified{v2}, nil
	}
	return nil, errors.New("cgroups are not mounted: mount cgroup2 on /sys/fs/cgroup")
}
