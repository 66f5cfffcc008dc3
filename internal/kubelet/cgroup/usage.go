package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Usage is the CPU time of a cgroup in nanoseconds and its working set in bytes: what is used less what the kernel could
// drop at once. ok is false if it does not exist. v2 says that the hierarchy at /sys/fs/cgroup is v2.
func Usage(path string, v2 bool) (cpu, memory uint64, ok bool) {
	if v2 {
		dir := filepath.Join("/sys/fs/cgroup", path)
		usec, ok1 := readKey(filepath.Join(dir, "cpu.stat"), "usage_usec")
		used, ok2 := readNumber(filepath.Join(dir, "memory.current"))
		inactive, _ := readKey(filepath.Join(dir, "memory.stat"), "inactive_file")
		return usec * 1000, used - min(inactive, used), ok1 && ok2
	}
	cpu, ok1 := readNumber(filepath.Join("/sys/fs/cgroup/cpuacct", path, "cpuacct.usage"))
	dir := filepath.Join("/sys/fs/cgroup/memory", path)
	used, ok2 := readNumber(filepath.Join(dir, "memory.usage_in_bytes"))
	inactive, _ := readKey(filepath.Join(dir, "memory.stat"), "total_inactive_file")
	return cpu, used - min(inactive, used), ok1 && ok2
}

func readNumber(path string) (uint64, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
	return n, err == nil
}

func readKey(path, key string) (uint64, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(data)) {
		if v, ok := strings.CutPrefix(line, key+" "); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(v), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// OOMKills is how many processes of a cgroup the OOM killer has killed.
func OOMKills(path string) int {
	for _, f := range []struct{ path, key string }{
		{filepath.Join("/sys/fs/cgroup/memory", path, "memory.oom_control"), "oom_kill "},
		{filepath.Join("/sys/fs/cgroup", path, "memory.events"), "oom_kill "},
	} {
		data, err := os.ReadFile(f.path)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			if v, ok := strings.CutPrefix(strings.TrimSpace(line), f.key); ok {
				n, err := strconv.Atoi(v)
				if err == nil {
					return n
				}
			}
		}
	}
	return 0
}

// Has reports whether a process is in a cgroup.
func Has(path string, pid uint32) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		if strings.HasSuffix(strings.TrimSpace(line), path) {
			return true
		}
	}
	return false
}
