package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/cri"
)

// ProbeKind is the purpose of a probe.
type ProbeKind string

// The kinds of probes, as Events name them.
const (
	StartupProbe   ProbeKind = "Startup"
	LivenessProbe  ProbeKind = "Liveness"
	ReadinessProbe ProbeKind = "Readiness"
)

// ProbeKey identifies a probe of one attempt of a container.
type ProbeKey struct {
	ContainerID string
	Kind        ProbeKind
}

// Probe is a probe that should run.
type Probe struct {
	Container string
	Spec      *corev1.Probe
	Started   time.Time // when the container started
}

func hasProbes(pod *corev1.Pod) bool {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if c := &list[i]; c.StartupProbe != nil || c.LivenessProbe != nil || c.ReadinessProbe != nil {
				return true
			}
		}
	}
	return false
}

// Probes returns the probes that should run now. Readiness and liveness wait for the startup probe. For a pod that is
// ending only readiness is probed, as in Kubernetes (pkg/kubelet/prober/worker.go).
func Probes(in Input) map[ProbeKey]Probe {
	if in.Pod == nil || !hasProbes(in.Pod) {
		return nil
	}
	out := map[ProbeKey]Probe{}
	ending := in.Termination() != nil
	for _, spec := range podspec.Containers(in.Pod) {
		c := Newest(in.View, spec.Name)
		if c == nil || c.State != cri.Running || in.InPostStart(c) || in.HealthOf(c).Kill != nil {
			continue
		}
		add := func(kind ProbeKind, p *corev1.Probe) {
			if p != nil {
				out[ProbeKey{c.ID, kind}] = Probe{Container: c.Name, Spec: p, Started: c.StartedAt}
			}
		}
		if !in.Started(c) {
			if !ending {
				add(StartupProbe, spec.StartupProbe)
			}
			continue
		}
		add(ReadinessProbe, spec.ReadinessProbe)
		if !ending {
			add(LivenessProbe, spec.LivenessProbe)
		}
	}
	return out
}

// Streak counts equal answers of one probe in a row.
type Streak struct {
	last   bool
	length int
}

// Add counts an answer. It reports whether there are now as many equal answers in a row as p's threshold requires, so
// that the answer becomes the probe's result.
func (t *Streak) Add(ok bool, p *corev1.Probe) (counts bool) {
	if t.length == 0 || t.last != ok {
		t.last, t.length = ok, 0
	}
	t.length++
	if ok {
		return t.length >= int(max(p.SuccessThreshold, 1))
	}
	failures := p.FailureThreshold
	if failures <= 0 {
		failures = 3
	}
	return t.length >= int(failures)
}
