package cadvisor

import (
	"os"
	"runtime"
	"strings"
	"time"

	v1 "github.com/google/cadvisor/info/v1"
	v2 "github.com/google/cadvisor/info/v2"
	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"minik8s/internal/kubelet/stats/storage"
)

// machineInfo is what cAdvisor says of a machine, as far as it is asked for: cores, memory, and who it is.
func machineInfo() (*v1.MachineInfo, error) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return nil, err
	}
	m, err := proc.Meminfo()
	if err != nil {
		return nil, err
	}
	out := &v1.MachineInfo{Timestamp: time.Now(), NumCores: runtime.NumCPU(), MachineID: line("/etc/machine-id"),
		SystemUUID: line("/sys/class/dmi/id/product_uuid"), BootID: line("/proc/sys/kernel/random/boot_id")}
	if m.MemTotal != nil {
		out.MemoryCapacity = *m.MemTotal << 10
	}
	if m.SwapTotal != nil {
		out.SwapCapacity = *m.SwapTotal << 10
	}
	cpus, err := proc.CPUInfo()
	if err != nil {
		return nil, err
	}
	cores, sockets := map[string]bool{}, map[string]bool{}
	for i := range cpus {
		cores[cpus[i].PhysicalID+"/"+cpus[i].CoreID], sockets[cpus[i].PhysicalID] = true, true
		out.CPUVendorID, out.CpuFrequency = cpus[i].VendorID, uint64(cpus[i].CPUMHz*1000)
	}
	out.NumPhysicalCores, out.NumSockets = len(cores), len(sockets)
	for _, f := range storage.Mounted() {
		out.Filesystems = append(out.Filesystems, v1.FsInfo{Device: f.Device, Type: f.Type, Capacity: f.Capacity, Inodes: f.Inodes, HasInodes: true})
	}
	return out, nil
}

// line is the content of a file, empty if there is none.
func line(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

func attributes(version string) (*v2.Attributes, error) {
	info, err := machineInfo()
	if err != nil {
		return nil, err
	}
	out := v2.GetAttributes(info, &v1.VersionInfo{CadvisorVersion: version})
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return nil, err
	}
	out.KernelVersion = unix.ByteSliceToString(name.Release[:])
	return &out, nil
}

// machineStats are the samples of the machine; the newest has its file systems.
func machineStats(c *container) []v2.MachineStats {
	var out []v2.MachineStats
	for _, s := range c.stats2(len(c.Samples)) {
		out = append(out, v2.MachineStats{Timestamp: s.Timestamp, Cpu: s.Cpu, CpuInst: s.CpuInst, Memory: s.Memory, Network: s.Network})
	}
	if len(out) > 0 {
		last := &out[len(out)-1]
		for _, f := range c.mounted {
			last.Filesystem = append(last.Filesystem, v2.MachineFsStats{Device: f.Device, Type: f.Type, Capacity: new(f.Capacity), Usage: new(f.Used()),
				Available: new(f.Available), InodesFree: new(f.InodesFree)})
		}
	}
	return out
}
