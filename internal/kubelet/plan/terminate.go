package plan

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/cri"
)

// Termination says why and how a pod ends.
type Termination struct {
	Grace time.Duration
	// RemoveAll: the object is deleted or being deleted, so nothing of the pod may stay, not even logs.
	RemoveAll bool
	// Shutdown: the pod ends because the machine shuts down.
	Shutdown bool
	Why      string
}

// orphanGrace is the grace period of pods whose object is deleted. Their own grace period is no longer known.
const orphanGrace = time.Second

// Termination returns why the pod must end; nil: it should run. Whatever the reason, the machine's shutdown does not wait
// longer than it has said.
func (in Input) Termination() *Termination {
	t := in.termination()
	if s := in.State.Shutdown; s != nil && t != nil {
		t.Grace = min(t.Grace, max(0, s.Within-in.Now.Sub(s.At)))
	}
	return t
}

func (in Input) termination() *Termination {
	switch pod := in.Pod; {
	case pod == nil:
		return &Termination{Grace: orphanGrace, RemoveAll: true, Why: "Stopping container %s"}
	case pod.DeletionTimestamp != nil:
		return &Termination{Grace: in.deletionGrace(), RemoveAll: true, Why: "Stopping container %s"}
	case in.State.Rejected != nil, podspec.Finished(pod.Status.Phase):
		return &Termination{Grace: gracePeriod(pod), Why: "Stopping container %s"}
	case DeadlineExceeded(pod, in.Now):
		return &Termination{Grace: gracePeriod(pod), Why: "Stopping container %s, which ran longer than the pod's activeDeadlineSeconds"}
	case in.State.Shutdown != nil:
		return &Termination{Grace: gracePeriod(pod), Shutdown: true, Why: "Stopping container %s, because the machine shuts down"}
	case allContainersDone(in):
		return &Termination{Grace: gracePeriod(pod)}
	}
	return nil
}

func gracePeriod(pod *corev1.Pod) time.Duration {
	if g := pod.Spec.TerminationGracePeriodSeconds; g != nil {
		return time.Duration(max(*g, 0)) * time.Second
	}
	return corev1.DefaultTerminationGracePeriodSeconds * time.Second
}

// deletionGrace returns the rest of the grace period. It counts from when the kubelet saw the deletion, on its own
// monotonic clock, because the deletionTimestamp is from another clock, or from before this clock was set. When the
// daemon starts again it counts from the beginning, as in Kubernetes.
func (in Input) deletionGrace() time.Duration {
	whole := gracePeriod(in.Pod)
	if g := in.Pod.DeletionGracePeriodSeconds; g != nil {
		whole = time.Duration(max(*g, 0)) * time.Second
	}
	if in.State.DeletionSeen.IsZero() {
		return whole
	}
	return max(0, whole-in.Now.Sub(in.State.DeletionSeen))
}

// Deadline returns when activeDeadlineSeconds ends the pod; zero if it has none or the pod has not started.
func Deadline(pod *corev1.Pod) time.Time {
	if pod.Spec.ActiveDeadlineSeconds == nil || pod.Status.StartTime == nil {
		return time.Time{}
	}
	return pod.Status.StartTime.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second)
}

func DeadlineExceeded(pod *corev1.Pod, now time.Time) bool {
	t := Deadline(pod)
	return !t.IsZero() && !now.Before(t)
}

// allContainersDone reports whether every main container has ended and none will restart, or whether an init container
// has failed for good, so that none will start. Sidecars do not keep a pod running.
func allContainersDone(in Input) bool {
	if in.InitFailed() {
		return true
	}
	for i := range in.Pod.Spec.Containers {
		name := in.Pod.Spec.Containers[i].Name
		if in.State.IsInProgress(Action{Verb: StartContainer, Container: name}.Key()) {
			return false
		}
		if c := Newest(in.View, name); c != nil {
			if c.State != cri.Exited || in.WillRestart(c) {
				return false
			}
			continue
		}
		// The runtime no longer has it; the status says how it ended.
		t := lastTermination(in.Pod, name)
		if t == nil || RestartPolicyAllows(in.Pod, name, t.ExitCode) {
			return false
		}
	}
	return true
}

// minSidecarGrace is the shortest time that a sidecar gets to stop, even if the others used up the grace period.
const minSidecarGrace = 2 * time.Second

// stopAll stops all running containers. It reports whether one is still running or is being started or stopped.
// Sidecars serve the other containers, so they are stopped after them, the last one first (KEP-753).
func (p *planner) stopAll(grace time.Duration, why string) bool {
	others, busy := false, false
	sidecar := func(name string) bool { return p.Pod != nil && podspec.HasSidecar(p.Pod, name) }
	for i := range p.View.Containers {
		c := &p.View.Containers[i]
		if c.State != cri.Running {
			continue
		}
		busy = true
		if !sidecar(c.Name) {
			others = true
			p.stop(c, grace, why)
		}
	}
	for _, f := range p.State.InProgress {
		if f.Action.Verb == StartContainer || f.Action.Verb == StopContainer {
			busy = true
			others = others || !sidecar(f.Action.Container)
		}
	}
	if others || !busy || p.Pod == nil {
		return busy
	}
	for _, spec := range slices.Backward(p.Pod.Spec.InitContainers) {
		if !podspec.IsSidecar(&spec) {
			continue
		}
		running := false
		for i := range p.View.Containers {
			if c := &p.View.Containers[i]; c.Name == spec.Name && c.State == cri.Running {
				running = true
				p.stop(c, max(grace, minSidecarGrace), why)
			}
		}
		if running || p.State.IsInProgress(Action{Verb: StartContainer, Container: spec.Name}.Key()) {
			break
		}
	}
	return busy
}

// stop stops c, unless a stop that kills it at the same time or earlier is in progress.
func (p *planner) stop(c *cri.Container, grace time.Duration, why string) {
	by := p.Now.Add(grace)
	for _, f := range p.State.InProgress {
		if f.Action.Verb == StopContainer && f.Action.ID == c.ID && !f.KilledBy.After(by.Add(time.Second)) {
			return
		}
	}
	p.add(Action{Verb: StopContainer, Container: c.Name, ID: c.ID, Attempt: c.Attempt, Grace: grace, Why: why})
}

// terminate decides for a pod that must end. Each stage waits for the one before.
func (p *planner) terminate(e Termination) {
	if p.stopAll(e.Grace, e.Why) || p.settingUp() {
		return
	}
	if p.Pod != nil && !p.StatusWritten {
		return // the API must have the final status before containers are removed; its write wakes the worker
	}
	for _, c := range p.View.Containers {
		p.add(Action{Verb: RemoveContainer, Container: c.Name, ID: c.ID, Attempt: c.Attempt})
	}
	if len(p.View.Containers) > 0 {
		return
	}
	if p.View.Sandbox != nil {
		p.add(Action{Verb: RemoveSandbox})
		return
	}
	if !p.State.TornDown || e.RemoveAll && !p.State.LogsRemoved {
		p.add(Action{Verb: TearDown})
		return
	}
	if !e.RemoveAll {
		return // a finished pod stays in the API until it is deleted
	}
	if p.Pod != nil && !p.State.ObjectDeleted {
		p.add(Action{Verb: DeleteObject})
		return
	}
	p.out.Done = len(p.State.InProgress) == 0
}

// settingUp reports whether volumes or the sandbox are being created. Their removal then has to wait.
func (p *planner) settingUp() bool {
	return slices.ContainsFunc([]Verb{SetUpVolumes, MakeSandbox}, func(v Verb) bool {
		return p.State.IsInProgress(Action{Verb: v}.Key())
	})
}
