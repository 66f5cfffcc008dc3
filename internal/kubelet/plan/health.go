package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/cri"
)

// Health has the results of one container's probes and hooks.
type Health struct {
	// Started and Ready are results of probes; nil: no result yet.
	Started, Ready *bool
	// Kill, if set: the container must be stopped, and restarted if its policy allows.
	Kill *KillOrder
	// PreStopped: its preStop hook has been started.
	PreStopped bool
}

// KillOrder says why a container must be stopped and how long that may take.
type KillOrder struct {
	Why   string // the format of its Event; the argument is the container's name
	Grace *int64 // seconds; nil: the pod's grace period
}

// HealthOf returns the health of c.
func (in Input) HealthOf(c *cri.Container) Health {
	if h := in.State.Health[c.ID]; h != nil {
		return *h
	}
	return Health{}
}

// writtenStatus returns the status in the API of this attempt c; nil if there is none.
func (in Input) writtenStatus(c *cri.Container) *corev1.ContainerStatus {
	if st := podspec.ContainerStatus(&in.Pod.Status, c.Name); st != nil && st.ContainerID == cri.ContainerIDPrefix+c.ID {
		return st
	}
	return nil
}

// Started reports whether a running container has started up; its startup probe decides, if it has one. Results from an
// earlier run of the daemon are read from the status.
func (in Input) Started(c *cri.Container) bool {
	spec := podspec.Container(in.Pod, c.Name)
	if spec == nil || spec.StartupProbe == nil {
		return true
	}
	if h := in.HealthOf(c); h.Started != nil {
		return *h.Started
	}
	st := in.writtenStatus(c)
	return st != nil && st.Started != nil && *st.Started
}

// Ready reports whether a running container may receive traffic.
func (in Input) Ready(c *cri.Container) bool {
	if !in.Started(c) || in.HealthOf(c).Kill != nil {
		return false
	}
	spec := podspec.Container(in.Pod, c.Name)
	if spec == nil || spec.ReadinessProbe == nil {
		return true
	}
	if h := in.HealthOf(c); h.Ready != nil {
		return *h.Ready
	}
	st := in.writtenStatus(c)
	return st != nil && st.Ready
}

// killGrace returns the grace period of a container that is killed.
func killGrace(pod *corev1.Pod, s *KillOrder) time.Duration {
	if s.Grace != nil {
		return time.Duration(max(*s.Grace, 0)) * time.Second
	}
	return gracePeriod(pod)
}

// InPostStart reports whether the postStart hook of c is in progress. Until it ends, c is not shown as running.
func (in Input) InPostStart(c *cri.Container) bool {
	spec := podspec.Container(in.Pod, c.Name)
	return spec != nil && spec.Lifecycle != nil && spec.Lifecycle.PostStart != nil && c.State == cri.Running &&
		in.State.IsInProgress(Action{Verb: StartContainer, Container: c.Name}.Key())
}

// Record records the result of a probe.
func (h *Health) Record(kind ProbeKind, ok bool, p *corev1.Probe) {
	switch {
	case kind == ReadinessProbe:
		h.Ready = &ok
	case kind == StartupProbe && ok:
		h.Started = &ok
	case !ok && h.Kill == nil:
		h.Kill = &KillOrder{Why: "Container %s failed liveness probe, will be restarted", Grace: p.TerminationGracePeriodSeconds}
		if kind == StartupProbe {
			h.Kill.Why = "Container %s failed startup probe, will be restarted"
		}
	}
}
