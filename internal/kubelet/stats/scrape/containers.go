package scrape

import (
	"cmp"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/exposition"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/stats"
	"minik8s/internal/kubelet/stats/storage"
)

// row is a series with the labels that its samples have.
type row struct {
	*stats.Series
	labels [labelings]string
	wanted *corev1.ResourceRequirements // nil: of no container that is known
	// through is the interface of the metrics of the network; nil: none. The machine has a row for each.
	through *cri.Network
	further bool // not the first of these, and so of those metrics alone
}

// labeling is which labels a family has beside those of all.
type labeling int

const (
	plain labeling = iota
	total          // cpu="total": of all processors
	disk           // device=""
	network
	labelings
)

// family is one of a container's metrics. A value that is negative is none.
type family struct {
	name, kind, help string
	of               labeling
	value            func(*row, *stats.Sample) float64
}

const second = 1e9

func seconds(nanos uint64) float64 { return float64(nanos) / second }
func micros(usec uint64) float64   { return float64(usec) / 1e6 }
func count(f func(*stats.Sample) uint64) func(*row, *stats.Sample) float64 {
	return func(_ *row, s *stats.Sample) float64 { return float64(f(s)) }
}

func ofNetwork(f func(*cri.Network) uint64) func(*row, *stats.Sample) float64 {
	return func(r *row, _ *stats.Sample) float64 {
		if r.through == nil {
			return -1
		}
		return float64(f(r.through))
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
	{"container_cpu_cfs_periods_total", exposition.Counter, "Number of elapsed enforcement period intervals.", plain, ofCFS(func(s *stats.Sample) float64 { return float64(s.Periods) })},
	{"container_cpu_cfs_throttled_periods_total", exposition.Counter, "Number of throttled period intervals.", plain, ofCFS(func(s *stats.Sample) float64 { return float64(s.ThrottledPeriods) })},
	{"container_cpu_cfs_throttled_seconds_total", exposition.Counter, "Total time duration the container has been throttled.", plain, ofCFS(func(s *stats.Sample) float64 { return seconds(s.Throttled) })},
	{"container_cpu_system_seconds_total", exposition.Counter, "Cumulative system cpu time consumed in seconds.", plain, func(_ *row, s *stats.Sample) float64 { return seconds(s.SystemCPU) }},
	{"container_cpu_usage_seconds_total", exposition.Counter, "Cumulative cpu time consumed in seconds.", total, func(_ *row, s *stats.Sample) float64 { return seconds(s.CPU) }},
	{"container_cpu_user_seconds_total", exposition.Counter, "Cumulative user cpu time consumed in seconds.", plain, func(_ *row, s *stats.Sample) float64 { return seconds(s.UserCPU) }},
	{"container_fs_reads_bytes_total", exposition.Counter, "Cumulative count of bytes read.", disk, count(func(s *stats.Sample) uint64 { return s.ReadBytes })},
	{"container_fs_reads_total", exposition.Counter, "Cumulative count of reads completed.", disk, count(func(s *stats.Sample) uint64 { return s.ReadCalls })},
	{"container_fs_writes_bytes_total", exposition.Counter, "Cumulative count of bytes written.", disk, count(func(s *stats.Sample) uint64 { return s.WrittenBytes })},
	{"container_fs_writes_total", exposition.Counter, "Cumulative count of writes completed.", disk, count(func(s *stats.Sample) uint64 { return s.WriteCalls })},
	{"container_last_seen", exposition.Gauge, "Last time a container was seen by the exporter.", plain, func(_ *row, s *stats.Sample) float64 { return float64(s.Time.Unix()) }},
	{"container_memory_cache", exposition.Gauge, "Number of bytes of page cache memory.", plain, count(func(s *stats.Sample) uint64 { return s.Cache })},
	{"container_memory_mapped_file", exposition.Gauge, "Size of memory mapped files in bytes.", plain, count(func(s *stats.Sample) uint64 { return s.Mapped })},
	{"container_memory_max_usage_bytes", exposition.Gauge, "Maximum memory usage recorded in bytes.", plain, count(func(s *stats.Sample) uint64 { return s.Peak })},
	{"container_memory_rss", exposition.Gauge, "Size of RSS in bytes.", plain, count(func(s *stats.Sample) uint64 { return s.RSS })},
	{"container_memory_swap", exposition.Gauge, "Container swap usage in bytes.", plain, count(func(s *stats.Sample) uint64 { return s.Swap })},
	{"container_memory_usage_bytes", exposition.Gauge, "Current memory usage in bytes, including all memory regardless of when it was accessed.", plain, count(func(s *stats.Sample) uint64 { return s.Memory })},
	{"container_memory_working_set_bytes", exposition.Gauge, "Current working set in bytes.", plain, count(func(s *stats.Sample) uint64 { return s.WorkingSet })},
	{"container_network_receive_bytes_total", exposition.Counter, "Cumulative count of bytes received.", network, ofNetwork(func(n *cri.Network) uint64 { return n.Received })},
	{"container_network_receive_errors_total", exposition.Counter, "Cumulative count of errors encountered while receiving.", network, ofNetwork(func(n *cri.Network) uint64 { return n.ErrorsIn })},
	{"container_network_receive_packets_dropped_total", exposition.Counter, "Cumulative count of packets dropped while receiving.", network, ofNetwork(func(n *cri.Network) uint64 { return n.DroppedIn })},
	{"container_network_receive_packets_total", exposition.Counter, "Cumulative count of packets received.", network, ofNetwork(func(n *cri.Network) uint64 { return n.PacketsIn })},
	{"container_network_transmit_bytes_total", exposition.Counter, "Cumulative count of bytes transmitted.", network, ofNetwork(func(n *cri.Network) uint64 { return n.Sent })},
	{"container_network_transmit_errors_total", exposition.Counter, "Cumulative count of errors encountered while transmitting.", network, ofNetwork(func(n *cri.Network) uint64 { return n.ErrorsOut })},
	{"container_network_transmit_packets_dropped_total", exposition.Counter, "Cumulative count of packets dropped while transmitting.", network, ofNetwork(func(n *cri.Network) uint64 { return n.DroppedOut })},
	{"container_network_transmit_packets_total", exposition.Counter, "Cumulative count of packets transmitted.", network, ofNetwork(func(n *cri.Network) uint64 { return n.PacketsOut })},
	{"container_oom_events_total", exposition.Counter, "Count of out of memory events observed for the container.", plain, count(func(s *stats.Sample) uint64 { return s.OOMKills })},
	{"container_pressure_cpu_stalled_seconds_total", exposition.Counter, "Total time duration no tasks in the container could make progress due to CPU congestion.", plain, ofPressure(func(p *cri.Pressure) uint64 { return p.CPU.Full.Total })},
	{"container_pressure_cpu_waiting_seconds_total", exposition.Counter, "Total time duration tasks in the container have waited due to CPU congestion.", plain, ofPressure(func(p *cri.Pressure) uint64 { return p.CPU.Some.Total })},
	{"container_pressure_io_stalled_seconds_total", exposition.Counter, "Total time duration no tasks in the container could make progress due to IO congestion.", plain, ofPressure(func(p *cri.Pressure) uint64 { return p.IO.Full.Total })},
	{"container_pressure_io_waiting_seconds_total", exposition.Counter, "Total time duration tasks in the container have waited due to IO congestion.", plain, ofPressure(func(p *cri.Pressure) uint64 { return p.IO.Some.Total })},
	{"container_pressure_memory_stalled_seconds_total", exposition.Counter, "Total time duration no tasks in the container could make progress due to memory congestion.", plain, ofPressure(func(p *cri.Pressure) uint64 { return p.Memory.Full.Total })},
	{"container_pressure_memory_waiting_seconds_total", exposition.Counter, "Total time duration tasks in the container have waited due to memory congestion.", plain, ofPressure(func(p *cri.Pressure) uint64 { return p.Memory.Some.Total })},
	{"container_spec_cpu_period", exposition.Gauge, "CPU period of the container.", plain, ofLimit(func(*corev1.ResourceRequirements) float64 { return 100000 })},
	{"container_spec_cpu_quota", exposition.Gauge, "CPU quota of the container.", plain, ofLimit(func(r *corev1.ResourceRequirements) float64 {
		if r.Limits.Cpu().IsZero() {
			return -1
		}
		return float64(r.Limits.Cpu().MilliValue() * 100)
	})},
	{"container_spec_cpu_shares", exposition.Gauge, "CPU share of the container.", plain, ofLimit(func(r *corev1.ResourceRequirements) float64 {
		return max(2, float64(r.Requests.Cpu().MilliValue()*1024/1000))
	})},
	{"container_spec_memory_limit_bytes", exposition.Gauge, "Memory limit for the container.", plain, ofLimit(func(r *corev1.ResourceRequirements) float64 { return float64(r.Limits.Memory().Value()) })},
	{"container_start_time_seconds", exposition.Gauge, "Start time of the container since unix epoch in seconds.", plain, func(r *row, _ *stats.Sample) float64 {
		if r.Started.IsZero() {
			return -1
		}
		return float64(r.Started.Unix())
	}},
	{"container_threads", exposition.Gauge, "Number of threads running inside the container.", plain, count(func(s *stats.Sample) uint64 { return s.Processes })},
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

// Containers writes the page of /metrics/cadvisor. disk is nil as long as nothing was measured.
func Containers(t *exposition.Text, r *stats.Reading, disk *storage.Reading, pods []*corev1.Pod, version string) {
	t.Family("cadvisor_version_info", exposition.Gauge, "A metric with a constant '1' value labeled by the version of this program.")
	t.Sample(exposition.Labels("cadvisorVersion", version), 1, r.Node.Last().Time)
	rows := rowsOf(r, pods)
	for i := range families {
		f := &families[i]
		t.Maybe(f.name, f.kind, f.help)
		for j := range rows {
			row := &rows[j]
			if row.further && f.of != network {
				continue
			}
			last := row.Last()
			value := f.value(row, last)
			if value < 0 || row.PodUID != "" && row.ContainerID == "" && rest(f.name) {
				continue
			}
			t.Sample(row.labels[f.of], value, last.Time)
		}
	}
	fileSystems(t, rows, disk)
	t.Family("machine_cpu_cores", exposition.Gauge, "Number of logical CPU cores.")
	t.Sample("", float64(runtime.NumCPU()), r.Node.Last().Time)
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		t.Family("machine_memory_bytes", exposition.Gauge, "Amount of memory installed on the machine.")
		t.Sample("", float64(info.Totalram)*float64(info.Unit), r.Node.Last().Time)
	}
}

// rowsOf are the machine, the pods as a whole, and the containers, in the order of their cgroups. Their labels are the
// kubelet's: a pod as a whole has no container.
func rowsOf(r *stats.Reading, pods []*corev1.Pod) []row {
	byUID := make(map[string]*corev1.Pod, len(pods))
	for _, p := range pods {
		byUID[string(p.UID)] = p
	}
	rows := []row{newRow(&r.Node, "/", "", "", &corev1.Pod{})}
	for i, n := range r.Node.Last().Networks() {
		if i > 0 {
			rows = append(rows, rows[0])
		}
		rows[i].through, rows[i].further = n, i > 0
		rows[i].labels[network] = exposition.Labels("interface", n.Interface) + "," + rows[i].labels[plain]
	}
	for _, s := range byCgroup(r.Pods, r.Containers) {
		p := byUID[s.PodUID]
		if p == nil {
			continue // it has just been removed
		}
		c, image := containerOf(p, s.Container), ""
		if c != nil {
			image = c.Image
		}
		next := newRow(s, s.Cgroup, image, s.ContainerID, p)
		if c != nil {
			next.wanted = &c.Resources
		}
		if n := s.Last().Network; n != nil {
			next.through, next.labels[network] = n, exposition.Labels("interface", n.Interface)+","+sandbox(s, p)
		}
		rows = append(rows, next)
	}
	return rows
}

// byCgroup are the series of both lists in the order of their cgroups.
func byCgroup(pods, containers []stats.Series) []*stats.Series {
	all := make([]*stats.Series, 0, len(pods)+len(containers))
	for _, list := range [][]stats.Series{pods, containers} {
		for i := range list {
			all = append(all, &list[i])
		}
	}
	slices.SortFunc(all, func(a, b *stats.Series) int { return cmp.Compare(a.Cgroup, b.Cgroup) })
	return all
}

// newRow returns a row, without a network.
func newRow(s *stats.Series, id, image, name string, p *corev1.Pod) row {
	r := row{Series: s}
	r.labels[plain] = labels(s, id, image, name, p)
	r.labels[total] = `cpu="total",` + r.labels[plain]
	r.labels[disk] = `device="",` + r.labels[plain]
	return r
}

func labels(s *stats.Series, id, image, name string, p *corev1.Pod) string {
	return exposition.Labels("container", s.Container, "id", id, "image", image, "name", name, "namespace", p.Namespace, "pod", p.Name)
}

// sandbox are the labels of what went through a pod's network: upstream it is a metric of the sandbox, which has a name and an
// image, too. Dashboards that show what has them look for it.
func sandbox(s *stats.Series, p *corev1.Pod) string {
	return labels(s, s.Cgroup, "pause", "k8s_POD_"+p.Name+"_"+p.Namespace+"_"+string(p.UID)+"_0", p)
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

// rest reports whether a metric is of what is not read of pods as a whole.
func rest(name string) bool {
	switch name {
	case "container_memory_max_usage_bytes", "container_memory_swap", "container_oom_events_total", "container_threads":
		return true
	}
	return strings.HasPrefix(name, "container_fs_") || strings.HasPrefix(name, "container_pressure_") || strings.HasPrefix(name, "container_cpu_cfs_")
}
