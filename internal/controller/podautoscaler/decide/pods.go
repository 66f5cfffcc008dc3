package decide

import (
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/podspec"
)

// groups are the target's pods, by how they count for one metric.
type groups struct {
	ready   int      // measured, and it counts
	unready []string // too young, or not ready: what was measured does not count
	missing []string // nothing was measured
	// without are the pods of which nothing counts that was measured: the unready ones, and those on their way out.
	without map[string]bool
}

// group sorts pods. Of cpu what a pod uses while it starts does not count.
func (in *Input) group(metrics map[string]PodMetric, resource corev1.ResourceName) groups {
	g := groups{without: map[string]bool{}}
	for _, p := range in.Pods {
		m, measured := metrics[p.Name]
		switch {
		case p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodFailed:
			g.without[p.Name] = true
		case p.Status.Phase == corev1.PodPending:
			g.unready = append(g.unready, p.Name)
		case !measured:
			g.missing = append(g.missing, p.Name)
		case resource == corev1.ResourceCPU && in.starting(p, &m):
			g.unready = append(g.unready, p.Name)
		default:
			g.ready++
		}
	}
	for _, name := range g.unready {
		g.without[name] = true
	}
	return g
}

// starting reports whether a pod's cpu does not count yet.
func (in *Input) starting(p *corev1.Pod, m *PodMetric) bool {
	ready, started := podspec.Condition(p.Status.Conditions, corev1.PodReady), p.Status.StartTime
	if ready == nil || started == nil {
		return true
	}
	off, changed := ready.Status == corev1.ConditionFalse, ready.LastTransitionTime.Time
	if started.Add(in.Settings.CPUInitialization).After(in.Now) {
		return off || m.Timestamp.Before(changed.Add(m.Window)) // it was measured in part before the pod was ready
	}
	return off && started.Add(in.Settings.InitialReadiness).After(changed)
}

// readyPods is how many pods run and are ready.
func (in *Input) readyPods() int64 {
	var n int64
	for _, p := range in.Pods {
		c := podspec.Condition(p.Status.Conditions, corev1.PodReady)
		if p.Status.Phase == corev1.PodRunning && c != nil && c.Status == corev1.ConditionTrue {
			n++
		}
	}
	return n
}

// tolerance is the range of ratios within which nothing is done.
type tolerance struct{ down, up float64 }

func (in *Input) tolerance() tolerance {
	t := tolerance{in.Settings.Tolerance, in.Settings.Tolerance}
	if b := in.Autoscaler.Spec.Behavior; b != nil {
		if r := b.ScaleDown; r != nil && r.Tolerance != nil {
			t.down = r.Tolerance.AsApproximateFloat64()
		}
		if r := b.ScaleUp; r != nil && r.Tolerance != nil {
			t.up = r.Tolerance.AsApproximateFloat64()
		}
	}
	return t
}

func (t tolerance) has(ratio float64) bool { return 1-t.down <= ratio && ratio <= 1+t.up }
