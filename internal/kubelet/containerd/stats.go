package containerd

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"minik8s/internal/kubelet/containerd/spec"
	"minik8s/internal/kubelet/cri"
)

// Stats implements cri.Runtime. It reads the cgroups directly: asking every shim takes longer than
// all of it here.
func (r *Runtime) Stats(ctx context.Context) ([]cri.Stats, error) {
	list := r.allContainers()
	now := time.Now()
	var out []cri.Stats
	for _, c := range list {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if s, _ := c.get(); s.State != cri.Running || c.meta.Name == pauseName {
			continue
		}
		cpu, memory, ok := readCgroup(c.meta.Cgroup, spec.ThisHost().Cgroup2)
		if !ok {
			continue // it has just ended
		}
		out = append(out, cri.Stats{
			PodUID: c.meta.PodUID, Container: c.meta.Name, ContainerID: c.meta.ID,
			Time: now, CPUNanos: cpu, MemoryBytes: memory,
		})
	}
	return out, nil
}

// readCgroup is the CPU time in nanoseconds and the working set in bytes: what is used less what the kernel could
// drop at once.
func readCgroup(path string, v2 bool) (cpu, memory uint64, ok bool) {
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
