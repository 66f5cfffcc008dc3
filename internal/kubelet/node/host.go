package node

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/cri"
)

// hostInfo is what does not change while the machine runs.
type hostInfo struct {
	os, arch                      string
	dataDir                       string
	memory                        int64 // bytes
	machineID, bootID, systemUUID string
	kernel, image                 string
}

func readHostInfo(dataDir string) hostInfo {
	h := hostInfo{os: runtime.GOOS, arch: runtime.GOARCH, dataDir: dataDir,
		memory:    meminfo("MemTotal"),
		machineID: firstOf("/etc/machine-id", "/var/lib/dbus/machine-id"),
		bootID:    firstOf("/proc/sys/kernel/random/boot_id"),
	}
	if h.systemUUID = firstOf("/sys/class/dmi/id/product_uuid"); h.systemUUID == "" {
		h.systemUUID = h.machineID
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		h.kernel = unix.ByteSliceToString(u.Release[:])
	}
	h.image = osName()
	return h
}

// firstOf is the content of the first file that is not empty.
func firstOf(files ...string) string {
	for _, f := range files {
		if data, err := os.ReadFile(f); err == nil && len(bytes.TrimSpace(data)) > 0 {
			return string(bytes.TrimSpace(data))
		}
	}
	return ""
}

// meminfo is a line of /proc/meminfo, in bytes; 0 if it cannot be read.
func meminfo(name string) int64 {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			if f := strings.Fields(rest); len(f) > 0 {
				kib, err := strconv.ParseInt(f[0], 10, 64)
				if err == nil {
					return kib << 10
				}
			}
		}
	}
	return 0
}

// osName is PRETTY_NAME of os-release.
func osName() string {
	for line := range strings.Lines(firstOf("/etc/os-release", "/usr/lib/os-release")) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return strings.Trim(v, `"'`)
		}
	}
	return "Linux"
}

// disk is the size of the data directory's file system and its free space, in bytes.
func (h hostInfo) disk() (size, free int64) {
	var st unix.Statfs_t
	for dir := h.dataDir; ; dir = filepath.Dir(dir) {
		if unix.Statfs(dir, &st) == nil {
			return int64(st.Blocks) * st.Bsize, int64(st.Bavail) * st.Bsize
		}
		if dir == "/" || dir == "." {
			return 0, 0
		}
	}
}

func (h hostInfo) info(kubelet, containerd string) corev1.NodeSystemInfo {
	return corev1.NodeSystemInfo{MachineID: h.machineID, SystemUUID: h.systemUUID, BootID: h.bootID,
		KernelVersion: h.kernel, OSImage: h.image, OperatingSystem: h.os, Architecture: h.arch,
		ContainerRuntimeVersion: cri.ContainerIDPrefix + containerd, KubeletVersion: kubelet}
}

// pidsLeft is how many more processes and threads the kernel allows.
func pidsLeft() int64 {
	limit, err := strconv.ParseInt(firstOf("/proc/sys/kernel/pid_max"), 10, 64)
	if err != nil {
		return lowPids
	}
	if threads, err := strconv.ParseInt(firstOf("/proc/sys/kernel/threads-max"), 10, 64); err == nil {
		limit = min(limit, threads)
	}
	var running int64
	// "0.20 0.18 0.12 1/80 11206": running and existing
	if f := strings.Fields(firstOf("/proc/loadavg")); len(f) > 3 {
		_, all, _ := strings.Cut(f[3], "/")
		if n, err := strconv.ParseInt(all, 10, 64); err == nil {
			running = n
		}
	}
	return limit - running
}
