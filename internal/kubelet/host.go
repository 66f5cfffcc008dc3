package kubelet

import (
	"bytes"
	"fmt"
	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/cri"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// hostFacts is what does not change while the machine runs.
type hostFacts struct {
	os, arch                      string
	dataDir                       string
	memory                        int64 // bytes
	machineID, bootID, systemUUID string
	kernel, image                 string
}

func readHostFacts(dataDir string) hostFacts {
	h := hostFacts{os: runtime.GOOS, arch: runtime.GOARCH, dataDir: dataDir,
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

// firstOf is the content of the first of the files that has any.
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

// disk is the size of the file system of the data directory and what is free of it, in bytes.
func (h hostFacts) disk() (size, free int64) {
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

func (h hostFacts) capacity(maxPods int) corev1.ResourceList {
	size, _ := h.disk()
	return corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(h.memory, resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(int64(maxPods), resource.DecimalSI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(size, resource.BinarySI),
	}
}

func (h hostFacts) info(kubelet, containerd string) corev1.NodeSystemInfo {
	return corev1.NodeSystemInfo{MachineID: h.machineID, SystemUUID: h.systemUUID, BootID: h.bootID,
		KernelVersion: h.kernel, OSImage: h.image, OperatingSystem: h.os, Architecture: h.arch,
		ContainerRuntimeVersion: cri.ContainerIDPrefix + containerd, KubeletVersion: kubelet}
}

// Where pressure begins. Kubernetes counts a disk as full at a tenth free; here it must in addition
// be short in bytes, for a tenth of a large disk is room for many pods.
const (
	lowMemory = 100 << 20
	lowDisk   = 2 << 30
	lowPids   = 1000
)

// conditions is how the node is now, in Kubernetes' words.
func (h hostFacts) conditions() []corev1.NodeCondition {
	size, free := h.disk()
	memory := meminfo("MemAvailable")
	return []corev1.NodeCondition{
		pressure(corev1.NodeMemoryPressure, memory > 0 && memory < lowMemory,
			"KubeletHasInsufficientMemory", "KubeletHasSufficientMemory", "memory available"),
		pressure(corev1.NodeDiskPressure, size > 0 && free < size/10 && free < lowDisk,
			"KubeletHasDiskPressure", "KubeletHasNoDiskPressure", "disk pressure"),
		pressure(corev1.NodePIDPressure, pidsLeft() < lowPids,
			"KubeletHasInsufficientPID", "KubeletHasSufficientPID", "PID available"),
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"},
	}
}

func pressure(t corev1.NodeConditionType, on bool, bad, good, what string) corev1.NodeCondition {
	c := corev1.NodeCondition{Type: t, Status: corev1.ConditionFalse, Reason: good, Message: "kubelet has sufficient " + what}
	if t == corev1.NodeDiskPressure {
		c.Message = "kubelet has no " + what
	}
	if on {
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, bad, "kubelet has insufficient "+what
		if t == corev1.NodeDiskPressure {
			c.Message = "kubelet has " + what
		}
	}
	return c
}

// pidsLeft is how many more processes and threads the kernel takes.
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

// ensureCgroup makes the pod's cgroup and returns its path; empty where the kubelet makes none.
func (k *Kubelet) ensureCgroup(pod *corev1.Pod) (string, error) {
	if k.cgroups == nil {
		return "", nil
	}
	res := podResources(pod)
	res.PidsLimit = k.cfg.PodPidsLimit
	return k.cgroups.Ensure(string(pod.UID), podspec.QOSClassOf(pod), res)
}

// noteCgroup counts the cgroup of a pod that was found again.
func (k *Kubelet) noteCgroup(pod *corev1.Pod) {
	if k.cgroups != nil {
		k.cgroups.Note(string(pod.UID), podspec.QOSClassOf(pod), podResources(pod))
	}
}

func (k *Kubelet) cgroupOf(pod *corev1.Pod) string {
	if k.cgroups == nil {
		return ""
	}
	return k.cgroups.PodPath(string(pod.UID), podspec.QOSClassOf(pod))
}

func (k *Kubelet) removeCgroup(uid string) error {
	if k.cgroups == nil {
		return nil
	}
	if err := k.cgroups.Remove(uid); err != nil {
		return fmt.Errorf("cgroup: %w", err)
	}
	return nil
}
