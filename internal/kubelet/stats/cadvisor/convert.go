package cadvisor

import (
	"time"

	v1 "github.com/google/cadvisor/info/v1"
	v2 "github.com/google/cadvisor/info/v2"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/stats"
	"minik8s/internal/kubelet/stats/storage"
)

// namespace is that of the aliases.
const namespace = "containerd"

// container is what is known of one, of a pod as a whole, or of the machine.
type container struct {
	*stats.Series
	pod *corev1.Pod // nil: none, or the kubelet has it no more
	// used is what its files take of data; both are nil as long as that was not measured.
	used *storage.Container
	data *storage.FileSystem
	// mounted is of the machine.
	mounted []storage.FileSystem
}

func (c *container) aliases() []string {
	if c.ContainerID == "" {
		return nil
	}
	return []string{c.ContainerID}
}

// is reports whether a path names the container: by its id, the beginning of it, or its cgroup.
func (c *container) is(name string) bool {
	return name == c.Cgroup || len(name) > 8 && len(c.ContainerID) >= len(name)-1 && c.ContainerID[:len(name)-1] == name[1:]
}

func (c *container) labels() map[string]string {
	if c.PodUID == "" {
		return nil
	}
	out := map[string]string{"io.kubernetes.pod.uid": c.PodUID}
	if c.Container != "" {
		out["io.kubernetes.container.name"] = c.Container
	}
	if c.pod != nil {
		out["io.kubernetes.pod.name"], out["io.kubernetes.pod.namespace"] = c.pod.Name, c.pod.Namespace
	}
	return out
}

// wanted are the limits and requests of the container, and its image; nothing of others.
func (c *container) wanted() (res corev1.ResourceRequirements, image string) {
	if c.pod == nil || c.Container == "" {
		return res, ""
	}
	for _, list := range [][]corev1.Container{c.pod.Spec.Containers, c.pod.Spec.InitContainers} {
		for i := range list {
			if list[i].Name == c.Container {
				return list[i].Resources, list[i].Image
			}
		}
	}
	return res, ""
}

// period is that of the kernel's CPU limits, in microseconds.
const period = 100_000

func (c *container) spec2() v2.ContainerSpec {
	res, image := c.wanted()
	s := v2.ContainerSpec{CreationTime: c.Started, Aliases: c.aliases(), Labels: c.labels(), Image: image, HasCpu: true, HasMemory: true, HasProcesses: true,
		HasDiskIo: true, HasFilesystem: c.used != nil || c.mounted != nil, HasNetwork: devices(c.Last()) != nil}
	if c.ContainerID != "" {
		s.Namespace = namespace
	}
	if q := res.Limits.Cpu(); !q.IsZero() {
		s.Cpu.MaxLimit, s.Cpu.Quota, s.Cpu.Period = uint64(q.MilliValue()), uint64(q.MilliValue()*period/1000), period
	}
	s.Cpu.Limit = max(2, uint64(res.Requests.Cpu().MilliValue())*1024/1000)
	s.Memory.Limit = uint64(res.Limits.Memory().Value())
	return s
}

func (c *container) spec1() v1.ContainerSpec {
	s := c.spec2()
	return v1.ContainerSpec{CreationTime: s.CreationTime, Labels: s.Labels, Image: s.Image, HasCpu: s.HasCpu, HasMemory: s.HasMemory,
		HasProcesses: s.HasProcesses, HasDiskIo: s.HasDiskIo, HasFilesystem: s.HasFilesystem, HasNetwork: s.HasNetwork, Memory: v1.MemorySpec{Limit: s.Memory.Limit},
		Cpu: v1.CpuSpec{Limit: s.Cpu.Limit, MaxLimit: s.Cpu.MaxLimit, Quota: s.Cpu.Quota, Period: s.Cpu.Period}}
}

// stats2 are the newest n samples. Each but the oldest says the rate since the one before.
func (c *container) stats2(n int) []*v2.ContainerStats {
	var out []*v2.ContainerStats
	for i := max(0, len(c.Samples)-n); i < len(c.Samples); i++ {
		s := &c.Samples[i]
		x := &v2.ContainerStats{Timestamp: s.Time, Cpu: cpu(s), Memory: memory(s), DiskIo: diskIO(s),
			Processes: &v1.ProcessStats{ThreadsCurrent: s.Processes}}
		if all := devices(s); all != nil {
			x.Network = &v2.NetworkStats{Interfaces: all}
		}
		if c.used != nil && i == len(c.Samples)-1 { // older ones do not have it
			x.Filesystem = &v2.FilesystemStats{TotalUsageBytes: new(c.used.Layer.Bytes + c.used.Log.Bytes), BaseUsageBytes: &c.used.Layer.Bytes,
				InodeUsage: new(c.used.Layer.Inodes + c.used.Log.Inodes)}
		}
		if i > 0 {
			x.CpuInst = instant(&c.Samples[i-1], s)
		}
		out = append(out, x)
	}
	return out
}

// instant is the use of CPU between two samples; nil where a counter went back.
func instant(before, now *stats.Sample) *v2.CpuInstStats {
	age := now.Time.Sub(before.Time)
	if age <= 0 || now.CPU < before.CPU || now.UserCPU < before.UserCPU || now.SystemCPU < before.SystemCPU {
		return nil
	}
	rate := func(n uint64) uint64 { return uint64(float64(n) * float64(time.Second) / float64(age)) }
	return &v2.CpuInstStats{Usage: v2.CpuInstUsage{Total: rate(now.CPU - before.CPU), User: rate(now.UserCPU - before.UserCPU),
		System: rate(now.SystemCPU - before.SystemCPU)}}
}

func (c *container) stats1(i int) *v1.ContainerStats {
	s := &c.Samples[i]
	x := &v1.ContainerStats{Timestamp: s.Time, Cpu: *cpu(s), Memory: *memory(s), DiskIo: *diskIO(s),
		Processes: v1.ProcessStats{ThreadsCurrent: s.Processes}}
	if all := devices(s); all != nil {
		x.Network = v1.NetworkStats{InterfaceStats: all[0], Interfaces: all}
	}
	if i < len(c.Samples)-1 {
		return x
	}
	switch {
	case c.PodUID == "":
		for i := range c.mounted {
			f := &c.mounted[i]
			x.Filesystem = append(x.Filesystem, fileSystem(f, f.Used(), 0))
		}
	case c.used != nil:
		x.Filesystem = []v1.FsStats{fileSystem(c.data, c.used.Layer.Bytes+c.used.Log.Bytes, c.used.Layer.Bytes)}
	}
	return x
}

// fileSystem is what is used of a file system, and what of it is the container's layer.
func fileSystem(f *storage.FileSystem, used, base uint64) v1.FsStats {
	return v1.FsStats{Device: f.Device, Type: f.Type, Limit: f.Capacity, Usage: used, BaseUsage: base, Available: f.Available, HasInodes: true,
		Inodes: f.Inodes, InodesFree: f.InodesFree}
}

func cpu(s *stats.Sample) *v1.CpuStats {
	out := &v1.CpuStats{Usage: v1.CpuUsage{Total: s.CPU, User: s.UserCPU, System: s.SystemCPU},
		CFS: v1.CpuCFS{Periods: s.Periods, ThrottledPeriods: s.ThrottledPeriods, ThrottledTime: s.Throttled}}
	if s.Pressure != nil {
		out.PSI = stall(s.Pressure.CPU)
	}
	return out
}

func memory(s *stats.Sample) *v1.MemoryStats {
	faults := v1.MemoryStatsMemoryData{Pgfault: s.Faults, Pgmajfault: s.MajorFaults}
	out := &v1.MemoryStats{Usage: s.Memory, MaxUsage: s.Peak, Cache: s.Cache, RSS: s.RSS, Swap: s.Swap, MappedFile: s.Mapped, WorkingSet: s.WorkingSet,
		TotalInactiveFile: s.Memory - s.WorkingSet, ContainerData: faults, HierarchicalData: faults}
	if s.Pressure != nil {
		out.PSI = stall(s.Pressure.Memory)
	}
	return out
}

// diskIO has the sum of all devices, as one without a name.
func diskIO(s *stats.Sample) *v1.DiskIoStats {
	out := &v1.DiskIoStats{}
	if s.ReadCalls+s.WriteCalls > 0 {
		out.IoServiceBytes = []v1.PerDiskStats{{Stats: map[string]uint64{"Read": s.ReadBytes, "Write": s.WrittenBytes, "Total": s.ReadBytes + s.WrittenBytes}}}
		out.IoServiced = []v1.PerDiskStats{{Stats: map[string]uint64{"Read": s.ReadCalls, "Write": s.WriteCalls, "Total": s.ReadCalls + s.WriteCalls}}}
	}
	if s.Pressure != nil {
		out.PSI = stall(s.Pressure.IO)
	}
	return out
}

func stall(s cri.Stall) v1.PSIStats {
	return v1.PSIStats{Full: waited(s.Full), Some: waited(s.Some)}
}

// waited is in nanoseconds and percent there.
func waited(w cri.Waited) v1.PSIData {
	return v1.PSIData{Total: w.Total * 1000, Avg10: float64(w.Avg10) / 100, Avg60: float64(w.Avg60) / 100, Avg300: float64(w.Avg300) / 100}
}

// devices is nil where there is no network of its own.
func devices(s *stats.Sample) (out []v1.InterfaceStats) {
	for _, n := range s.Networks() {
		out = append(out, v1.InterfaceStats{Name: n.Interface, RxBytes: n.Received, RxPackets: n.PacketsIn, RxErrors: n.ErrorsIn, RxDropped: n.DroppedIn,
			TxBytes: n.Sent, TxPackets: n.PacketsOut, TxErrors: n.ErrorsOut, TxDropped: n.DroppedOut})
	}
	return out
}
