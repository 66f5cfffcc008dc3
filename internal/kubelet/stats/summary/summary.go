// Package summary says what a node uses in the form of the kubelet's /stats/summary
// (k8s.io/kubelet/pkg/apis/stats/v1alpha1). It is pure.
package summary

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/stats"
	"minik8s/internal/kubelet/stats/storage"
)

// Of returns the summary of a node. Pods that are not in the list, because the API knows them no more, are left out. disk is nil
// as long as nothing was measured.
func Of(node string, booted time.Time, r *stats.Reading, disk *storage.Reading, pods []*corev1.Pod) *statsapi.Summary {
	last := r.Node.Last()
	out := &statsapi.Summary{Node: statsapi.NodeStats{NodeName: node, StartTime: metav1.NewTime(booted),
		CPU: cpu(&r.Node), Memory: memory(last), IO: stalls(last), Swap: swap(last), Network: network(last)}, Pods: []statsapi.PodStats{}}
	if disk != nil {
		fs := fileSystem(&disk.Data)
		fs.UsedBytes = new(disk.Data.Used())
		out.Node.Fs = fs
		images := fileSystem(&disk.Data)
		if disk.Images != nil {
			images = use(&disk.Data, *disk.Images)
		}
		out.Node.Runtime = &statsapi.RuntimeStats{ImageFs: images, ContainerFs: images}
	}
	containers := map[string][]statsapi.ContainerStats{}
	processes := map[string]uint64{}
	for i := range r.Containers {
		c := &r.Containers[i]
		last := c.Last()
		processes[c.PodUID] += last.Processes
		one := statsapi.ContainerStats{Name: c.Container, StartTime: metav1.NewTime(c.Started),
			CPU: cpu(c), Memory: memory(last), IO: stalls(last), Swap: swap(last)}
		if disk != nil {
			if used := disk.Containers[c.ContainerID]; used != nil {
				one.Rootfs, one.Logs = use(&disk.Data, used.Layer), use(&disk.Data, used.Log)
			}
		}
		containers[c.PodUID] = append(containers[c.PodUID], one)
	}
	whole := map[string]*stats.Series{}
	for i := range r.Pods {
		whole[r.Pods[i].PodUID] = &r.Pods[i]
	}
	for _, p := range pods {
		uid := string(p.UID)
		w := whole[uid]
		if w == nil {
			continue
		}
		last := w.Last()
		slices.SortFunc(containers[uid], func(a, b statsapi.ContainerStats) int { return cmp.Compare(a.Name, b.Name) })
		next := statsapi.PodStats{PodRef: statsapi.PodReference{Name: p.Name, Namespace: p.Namespace, UID: uid},
			StartTime: metav1.NewTime(w.Started), Containers: slices.Clip(containers[uid]), CPU: cpu(w), Memory: memory(last),
			Network: network(last), ProcessStats: &statsapi.ProcessStats{ProcessCount: new(processes[uid])}}
		if disk != nil {
			next.VolumeStats, next.EphemeralStorage = volumes(disk, uid), ephemeral(disk, uid, next.Containers)
		}
		out.Pods = append(out.Pods, next)
	}
	return out
}

func cpu(s *stats.Series) *statsapi.CPUStats {
	last := s.Last()
	out := &statsapi.CPUStats{Time: metav1.NewTime(last.Time), UsageCoreNanoSeconds: &last.CPU}
	if rate, _, ok := s.Rate(0); ok {
		out.UsageNanoCores = &rate
	}
	if p := last.Pressure; p != nil {
		out.PSI = stall(p.CPU)
	}
	return out
}

func memory(x *stats.Sample) *statsapi.MemoryStats {
	out := &statsapi.MemoryStats{Time: metav1.NewTime(x.Time), UsageBytes: &x.Memory, WorkingSetBytes: &x.WorkingSet, RSSBytes: &x.RSS,
		PageFaults: &x.Faults, MajorPageFaults: &x.MajorFaults}
	if p := x.Pressure; p != nil {
		out.PSI = stall(p.Memory)
	}
	return out
}

func stalls(x *stats.Sample) *statsapi.IOStats {
	if x.Pressure == nil {
		return nil
	}
	return &statsapi.IOStats{Time: metav1.NewTime(x.Time), PSI: stall(x.Pressure.IO)}
}

func stall(s cri.Stall) *statsapi.PSIStats {
	return &statsapi.PSIStats{Full: waited(s.Full), Some: waited(s.Some)}
}

// waited is in nanoseconds and percent there.
func waited(w cri.Waited) statsapi.PSIData {
	return statsapi.PSIData{Total: w.Total * 1000, Avg10: float64(w.Avg10) / 100, Avg60: float64(w.Avg60) / 100, Avg300: float64(w.Avg300) / 100}
}

func swap(x *stats.Sample) *statsapi.SwapStats {
	return &statsapi.SwapStats{Time: metav1.NewTime(x.Time), SwapUsageBytes: &x.Swap}
}

func network(x *stats.Sample) *statsapi.NetworkStats {
	var all []statsapi.InterfaceStats
	for _, n := range x.Networks() {
		all = append(all, statsapi.InterfaceStats{Name: n.Interface, RxBytes: &n.Received, RxErrors: &n.ErrorsIn, TxBytes: &n.Sent, TxErrors: &n.ErrorsOut})
	}
	if all == nil {
		return nil
	}
	return &statsapi.NetworkStats{Time: metav1.NewTime(x.Time), InterfaceStats: all[0], Interfaces: all}
}

// Short is a summary of CPU and memory alone.
func Short(s *statsapi.Summary) *statsapi.Summary {
	out := &statsapi.Summary{Node: statsapi.NodeStats{NodeName: s.Node.NodeName, StartTime: s.Node.StartTime, CPU: s.Node.CPU, Memory: s.Node.Memory},
		Pods: []statsapi.PodStats{}}
	for _, p := range s.Pods {
		short := statsapi.PodStats{PodRef: p.PodRef, StartTime: p.StartTime, CPU: p.CPU, Memory: p.Memory}
		for _, c := range p.Containers {
			short.Containers = append(short.Containers, statsapi.ContainerStats{Name: c.Name, StartTime: c.StartTime, CPU: c.CPU, Memory: c.Memory})
		}
		out.Pods = append(out.Pods, short)
	}
	return out
}
