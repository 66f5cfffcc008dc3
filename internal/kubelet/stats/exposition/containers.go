package exposition

import (
	"cmp"
	"path"
	"runtime"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/stats"
)

// row is a series with the labels that all its samples have.
type row struct {
	*stats.Series
	labels string
	wanted *corev1.ResourceRequirements // nil: of no container that is known
}

func (r *row) with(more string) string {
	if r.labels == "" {
		return more
	}
	return more + "," + r.labels
}

// family is one of a container's metrics. A value that is negative is none.
type family struct {
	name, kind, help string
	label            string // one more, of all samples
	value            func(*row, *stats.Sample) float64
}

const second = 1e9

func seconds(nanos uint64) float64 { return float64(nanos) / second }
func micros(usec uint64) float64   { return float64(usec) / 1e6 }
func count(f func(*stats.Sample) uint64) func(*row, *stats.Sample) float64 {
	return func(_ *row, s *stats.Sample) float64 { return float64(f(s)) }
}

func ofNetwork(f func(*cri.Network) uint64) func(*row, *stats.Sample) float64 {
	return func(_ *row, s *stats.Sample) float64 {
		if s.Network == nil {
			return -1
		}
		return float64(f(s.Network))
	}
}

func ofPressure(f func(*cri.Pressure) uint64) func(*row, *stats.Sample) float64 {
	return func(_ *row, s *stats.Sample) float64 {
		if s.Pressure == nil {
			return -1
		}
		return micros(f(s.Pressure))
	}
}

func ofLimit(f func(*corev1.ResourceRequirements) float64) func(*row, *stats.Sample) float64 {
	return func(r *row, _ *stats.Sample) float64 {
		if r.wanted == nil {
			return -1
		}
		return f(r.wanted)
	}
}

// families are cAdvisor's (docs/storage/prometheus.md there), in the order of their names.
var families = []family{
	{"container_cpu_cfs_periods_total", Counter, "Number of elapsed enforcement period intervals.", "", ofCFS(func(s *stats.Sample) float64 { return float64(s.Periods) })},
	{"container_cpu_cfs_throttled_periods_total", Counter, "Number of throttled period intervals.", "", ofCFS(func(s *stats.Sample) float64 { return float64(s.ThrottledPeriods) })},
	{"container_cpu_cfs_throttled_seconds_total", Counter, "Total time duration the container has been throttled.", "", ofCFS(func(s *stats.Sample) float64 { return seconds(s.Throttled) })},
	{"container_cpu_system_seconds_total", Counter, "Cumulative system cpu time consumed in seconds.", "", func(_ *row, s *stats.Sample) float64 { return seconds(s.SystemCPU) }},
	{"container_cpu_usage_seconds_total", Counter, "Cumulative cpu time consumed in seconds.", `cpu="total"`, func(_ *row, s *stats.Sample) float64 { return seconds(s.CPU) }},
	{"container_cpu_user_seconds_total", Counter, "Cumulative user cpu time consumed in seconds.", "", func(_ *row, s *stats.Sample) float64 { return seconds(s.UserCPU) }},
	{"container_fs_reads_bytes_total", Counter, "Cumulative count of bytes read.", `device=""`, count(func(s *stats.Sample) uint64 { return s.ReadBytes })},
	{"container_fs_reads_total", Counter, "Cumulative count of reads completed.", `device=""`, count(func(s *stats.Sample) uint64 { return s.ReadCalls })},
	{"container_fs_writes_bytes_total", Counter, "Cumulative count of bytes written.", `device=""`, count(func(s *stats.Sample) uint64 { return s.WrittenBytes })},
	{"container_fs_writes_total", Counter, "Cumulative count of writes completed.", `device=""`, count(func(s *stats.Sample) uint64 { return s.WriteCalls })},
	{"container_last_seen", Gauge, "Last time a container was seen by the exporter.", "", func(_ *row, s *stats.Sample) float64 { return float64(s.Time.Unix()) }},
	{"container_memory_cache", Gauge, "Number of bytes of page cache memory.", "", count(func(s *stats.Sample) uint64 { return s.Cache })},
	{"container_memory_mapped_file", Gauge, "Size of memory mapped files in bytes.", "", count(func(s *stats.Sample) uint64 { return s.Mapped })},
	{"container_memory_max_usage_bytes", Gauge, "Maximum memory usage recorded in bytes.", "", count(func(s *stats.Sample) uint64 { return s.Peak })},
	{"container_memory_rss", Gauge, "Size of RSS in bytes.", "", count(func(s *stats.Sample) uint64 { return s.RSS })},
	{"container_memory_swap", Gauge, "Container swap usage in bytes.", "", count(func(s *stats.Sample) uint64 { return s.Swap })},
	{"container_memory_usage_bytes", Gauge, "Current memory usage in bytes, including all memory regardless of when it was accessed.", "", count(func(s *stats.Sample) uint64 { return s.Memory })},
	{"container_memory_working_set_bytes", Gauge, "Current working set in bytes.", "", count(func(s *stats.Sample) uint64 { return s.WorkingSet })},
	{"container_network_receive_bytes_total", Counter, "Cumulative count of bytes received.", "", ofNetwork(func(n *cri.Network) uint64 { return n.Received })},
	{"container_network_receive_errors_total", Counter, "Cumulative count of errors encountered while receiving.", "", ofNetwork(func(n *cri.Network) uint64 { return n.ErrorsIn })},
	{"container_network_receive_packets_dropped_total", Counter, "Cumulative count of packets dropped while receiving.", "", ofNetwork(func(n *cri.Network) uint64 { return n.DroppedIn })},
	{"container_network_receive_packets_total", Counter, "Cumulative count of packets received.", "", ofNetwork(func(n *cri.Network) uint64 { return n.PacketsIn })},
	{"container_network_transmit_bytes_total", Counter, "Cumulative count of bytes transmitted.", "", ofNetwork(func(n *cri.Network) uint64 { return n.Sent })},
	{"container_network_transmit_errors_total", Counter, "Cumulative count of errors encountered while transmitting.", "", ofNetwork(func(n *cri.Network) uint64 { return n.ErrorsOut })},
	{"container_network_transmit_packets_dropped_total", Counter, "Cumulative count of packets dropped while transmitting.", "", ofNetwork(func(n *cri.Network) uint64 { return n.DroppedOut })},
	{"container_network_transmit_packets_total", Counter, "Cumulative count of packets transmitted.", "", ofNetwork(func(n *cri.Network) uint64 { return n.PacketsOut })},
	{"container_oom_events_total", Counter, "Count of out of memory events observed for the container.", "", count(func(s *stats.Sample) uint64 { return s.OOMKills })},
	{"container_pressure_cpu_stalled_seconds_total", Counter, "Total time duration no tasks in the container could make progress due to CPU congestion.", "", ofPressure(func(p *cri.Pressure) uint64 { return p.CPU.Full })},
	{"container_pressure_cpu_waiting_seconds_total", Counter, "Total time duration tasks in the container have waited due to CPU congestion.", "", ofPressure(func(p *cri.Pressure) uint64 { return p.CPU.Some })},
	{"container_pressure_io_stalled_seconds_total", Counter, "Total time duration no tasks in the container could make progress due to IO congestion.", "", ofPressure(func(p *cri.Pressure) uint64 { return p.IO.Full })},
	{"container_pressure_io_waiting_seconds_total", Counter, "Total time duration tasks in the container have waited due to IO congestion.", "", ofPressure(func(p *cri.Pressure) uint64 { return p.IO.Some })},
	{"container_pressure_memory_stalled_seconds_total", Counter, "Total time duration no tasks in the container could make progress due to memory congestion.", "", ofPressure(func(p *cri.Pressure) uint64 { return p.Memory.Full })},
	{"container_pressure_memory_waiting_seconds_total", Counter, "Total time duration tasks in the container have waited due to memory congestion.", "", ofPressure(func(p *cri.Pressure) uint64 { return p.Memory.Some })},
	{"container_spec_cpu_period", Gauge, "CPU period of the container.", "", ofLimit(func(*corev1.ResourceRequirements) float64 { return 100000 })},
	{"container_spec_cpu_quota", Gauge, "CPU quota of the container.", "", ofLimit(func(r *corev1.ResourceRequirements) float64 {
		if r.Limits.Cpu().IsZero() {
			return -1
		}
		return float64(r.Limits.Cpu().MilliValue() * 100)
	})},
	{"container_spec_cpu_shares", Gauge, "CPU share of the container.", "", ofLimit(func(r *corev1.ResourceRequirements) float64 {
		return max(2, float64(r.Requests.Cpu().MilliValue()*1024/1000))
	})},
	{"container_spec_memory_limit_bytes", Gauge, "Memory limit for the container.", "", ofLimit(func(r *corev1.ResourceRequirements) float64 { return float64(r.Limits.Memory().Value()) })},
	{"container_start_time_seconds", Gauge, "Start time of the container since unix epoch in seconds.", "", func(r *row, _ *stats.Sample) float64 {
		if r.Started.IsZero() {
			return -1
		}
		return float64(r.Started.Unix())
	}},
	{"container_threads", Gauge, "Number of threads running inside the container.", "", count(func(s *stats.Sample) uint64 { return s.Processes })},
}

// ofCFS is of containers that have a CPU limit.
func ofCFS(f func(*stats.Sample) float64) func(*row, *stats.Sample) float64 {
	return func(_ *row, s *stats.Sample) float64 {
		if s.Periods == 0 {
			return -1
		}
		return f(s)
	}
}

// Containers is the page of /metrics/cadvisor.
func Containers(r *stats.Reading, pods []*corev1.Pod, version string) []byte {
	t := &Text{page: make([]byte, 0, 16<<10)}
	t.Family("cadvisor_version_info", Gauge, "A metric with a constant '1' value labeled by the version of this program.")
	t.Sample(Labels("cadvisorVersion", version), 1, r.Node.Last().Time)
	rows := rowsOf(r, pods)
	for i := range families {
		f := &families[i]
		begun := false
		for j := range rows {
			row := &rows[j]
			last := row.Last()
			value := f.value(row, last)
			if value < 0 || row.PodUID != "" && row.ContainerID == "" && rest(f.name) {
				continue
			}
			if !begun {
				t.Family(f.name, f.kind, f.help)
				begun = true
			}
			labels := row.labels
			switch {
			case f.label != "":
				labels = row.with(f.label)
			case last.Network != nil && len(f.name) > len(networks) && f.name[:len(networks)] == networks:
				labels = row.with(Labels("interface", last.Network.Interface))
			}
			t.Sample(labels, value, last.Time)
		}
	}
	t.Family("machine_cpu_cores", Gauge, "Number of logical CPU cores.")
	t.Sample("", float64(runtime.NumCPU()), r.Node.Last().Time)
	return t.Bytes()
}

const networks = "container_network_"

// rest reports whether a metric is of what is not read of pods as a whole.
func rest(name string) bool {
	switch name {
	case "container_memory_max_usage_bytes", "container_memory_swap", "container_oom_events_total", "container_threads":
		return true
	}
	return strings.HasPrefix(name, "container_fs_") || strings.HasPrefix(name, "container_pressure_") || strings.HasPrefix(name, "container_cpu_cfs_")
}

// rowsOf are the machine, the pods as a whole, and the containers, in the order of their cgroups. Their labels are the
// kubelet's: a pod as a whole has no container.
func rowsOf(r *stats.Reading, pods []*corev1.Pod) []row {
	byUID := make(map[string]*corev1.Pod, len(pods))
	for _, p := range pods {
		byUID[string(p.UID)] = p
	}
	rows := []row{{Series: &r.Node, labels: Labels("container", "", "id", "/", "image", "", "name", "", "namespace", "", "pod", "")}}
	for _, list := range [][]stats.Series{r.Pods, r.Containers} {
		for i := range list {
			s := &list[i]
			p := byUID[s.PodUID]
			if p == nil {
				continue // it has just been removed
			}
			next := row{Series: s}
			image := ""
			if c := containerOf(p, s.Container); c != nil {
				next.wanted, image = &c.Resources, c.Image
			}
			next.labels = Labels("container", s.Container, "id", s.Cgroup, "image", image, "name", s.ContainerID, "namespace", p.Namespace, "pod", p.Name)
			rows = append(rows, next)
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(path.Clean(a.Cgroup), path.Clean(b.Cgroup)) })
	return rows
}

func containerOf(p *corev1.Pod, name string) *corev1.Container {
	for _, list := range [][]corev1.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}
