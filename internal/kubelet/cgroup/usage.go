package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

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
