package kubelet

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/cri"
)

// probeKind is what a probe is for.
type probeKind string

// The kinds of probes, as events name them.
const (
	startupProbe   probeKind = "Startup"
	livenessProbe  probeKind = "Liveness"
	readinessProbe probeKind = "Readiness"
)

// health is what probes and hooks have found out about one container.
type health struct {
	// started and ready are nil as long as no probe has said.
	started, ready *bool
	// condemned: the container is to be ended and begun anew.
	condemned *sentence
	// preStopped: its preStop hook was begun.
	preStopped bool
}

// sentence is why a container is to be ended, for people, and how long it may take.
type sentence struct {
	why   string
	grace *int64 // nil: the pod's
}

// healthOf is mem.health without the making.
func (in input) healthOf(c *cri.Container) health {
	if h := in.mem.health[c.ID]; h != nil {
		return *h
	}
	return health{}
}

// shownAs is the status of c itself, not of another attempt; nil if there is none.
func (in input) shownAs(c *cri.Container) *corev1.ContainerStatus {
	if st := statusIn(&in.pod.Status, c.Name); st != nil && st.ContainerID == containerIDPrefix+c.ID {
		return st
	}
	return nil
}

// started says that a running container has come up, by its startup probe if it has one. What an earlier
// life of the daemon has found out stands in the status.
func (in input) started(c *cri.Container) bool {
	spec := containerNamed(in.pod, c.Name)
	if spec == nil || spec.StartupProbe == nil {
		return true
	}
	if h := in.healthOf(c); h.started != nil {
		return *h.started
	}
	st := in.shownAs(c)
	return st != nil && st.Started != nil && *st.Started
}

// ready says that a running container may get traffic.
func (in input) ready(c *cri.Container) bool {
	if !in.started(c) || in.healthOf(c).condemned != nil {
		return false
	}
	spec := containerNamed(in.pod, c.Name)
	if spec == nil || spec.ReadinessProbe == nil {
		return true
	}
	if h := in.healthOf(c); h.ready != nil {
		return *h.ready
	}
	st := in.shownAs(c)
	return st != nil && st.Ready
}

// condemnedGrace is how long a condemned container has to end.
func condemnedGrace(pod *corev1.Pod, s *sentence) time.Duration {
	if s.grace != nil {
		return time.Duration(max(*s.grace, 0)) * time.Second
	}
	return specGrace(pod)
}

// probeKey names a probe of one attempt of a container.
type probeKey struct {
	id   string
	kind probeKind
}

// probeJob is a probe that is to go on.
type probeJob struct {
	container string
	spec      *corev1.Probe
	started   time.Time // of the container
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

// probesDue are the probes that are to go on now. It is pure. The others wait for the startup probe; a pod
// that is to end is still asked whether it is ready, and nothing else.
func probesDue(in input) map[probeKey]probeJob {
	if in.pod == nil || !hasProbes(in.pod) {
		return nil
	}
	out := map[probeKey]probeJob{}
	ending := in.endReason() != nil
	for _, spec := range allContainers(in.pod) {
		c := newest(in.view, spec.Name)
		if c == nil || c.State != cri.Running || in.hooking(c) || in.healthOf(c).condemned != nil {
			continue
		}
		add := func(kind probeKind, p *corev1.Probe) {
			if p != nil {
				out[probeKey{c.ID, kind}] = probeJob{container: c.Name, spec: p, started: c.StartedAt}
			}
		}
		if !in.started(c) {
			if !ending {
				add(startupProbe, spec.StartupProbe)
			}
			continue
		}
		add(readinessProbe, spec.ReadinessProbe)
		if !ending {
			add(livenessProbe, spec.LivenessProbe)
		}
	}
	return out
}

// hooking says that c is not yet shown as running, for its postStart hook is under way.
func (in input) hooking(c *cri.Container) bool {
	spec := containerNamed(in.pod, c.Name)
	return spec != nil && spec.Lifecycle != nil && spec.Lifecycle.PostStart != nil && c.State == cri.Running &&
		in.mem.inFlight(action{verb: startContainer, container: c.Name}.key())
}

// tally counts the answers of one probe.
type tally struct {
	last bool
	run  int
}

// add takes an answer and says whether, by the thresholds of p, it is now the probe's result.
func (t *tally) add(ok bool, p *corev1.Probe) (counts bool) {
	if t.run == 0 || t.last != ok {
		t.last, t.run = ok, 0
	}
	t.run++
	if ok {
		return t.run >= int(max(p.SuccessThreshold, 1))
	}
	failures := p.FailureThreshold
	if failures <= 0 {
		failures = 3
	}
	return t.run >= int(failures)
}

// take notes the result of a probe.
func (h *health) take(kind probeKind, ok bool, p *corev1.Probe) {
	switch {
	case kind == readinessProbe:
		h.ready = &ok
	case kind == startupProbe && ok:
		h.started = &ok
	case !ok && h.condemned == nil:
		h.condemned = &sentence{why: "Container %s failed liveness probe, will be restarted", grace: p.TerminationGracePeriodSeconds}
		if kind == startupProbe {
			h.condemned.why = "Container %s failed startup probe, will be restarted"
		}
	}
}
