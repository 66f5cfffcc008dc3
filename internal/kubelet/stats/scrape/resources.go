package scrape

import (
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/exposition"
	"minik8s/internal/kubelet/stats"
)

// Resources writes the page of /metrics/resource: only what an autoscaler needs.
func Resources(t *exposition.Text, r *stats.Reading, pods []*corev1.Pod) {
	byUID := make(map[string]*corev1.Pod, len(pods))
	for _, p := range pods {
		byUID[string(p.UID)] = p
	}
	each := func(list []stats.Series, prefix string, container bool) {
		labels := make([]string, len(list)) // the same in each family
		for i := range list {
			s := &list[i]
			if p := byUID[s.PodUID]; p != nil && container {
				labels[i] = exposition.Labels("container", s.Container, "namespace", p.Namespace, "pod", p.Name)
			} else if p != nil {
				labels[i] = exposition.Labels("namespace", p.Namespace, "pod", p.Name)
			}
		}
		for _, m := range []struct {
			name, kind, help string
			value            func(*stats.Series) float64
		}{
			{"cpu_usage_seconds_total", exposition.Counter, "Cumulative cpu time consumed in core-seconds.", func(s *stats.Series) float64 { return seconds(s.Last().CPU) }},
			{"memory_working_set_bytes", exposition.Gauge, "Current working set in bytes.", func(s *stats.Series) float64 { return float64(s.Last().WorkingSet) }},
			{"swap_usage_bytes", exposition.Gauge, "Current swap usage in bytes.", func(s *stats.Series) float64 { return float64(s.Last().Swap) }},
			{"start_time_seconds", exposition.Gauge, "Start time since unix epoch in seconds.", func(s *stats.Series) float64 { return float64(s.Started.Unix()) }},
		} {
			if m.name == "start_time_seconds" && !container {
				continue
			}
			t.Family(prefix+m.name, m.kind, m.help)
			for i := range list {
				s := &list[i]
				if s.PodUID != "" && byUID[s.PodUID] == nil || m.name == "start_time_seconds" && s.Started.IsZero() {
					continue // it has just been removed
				}
				t.Sample(labels[i], m.value(s), s.Last().Time)
			}
		}
	}
	each(r.Containers, "container_", true)
	each([]stats.Series{r.Node}, "node_", false)
	each(r.Pods, "pod_", false)
	t.Family("resource_scrape_error", exposition.Gauge, "1 if there was an error while getting container metrics, 0 otherwise.")
	t.Sample("", 0, r.Node.Last().Time)
}
