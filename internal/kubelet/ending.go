package kubelet

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/cri"
)

// ending is why and how a pod goes down.
type ending struct {
	grace time.Duration
	// forget: the object is deleted or being deleted, so that nothing at all is to stay.
	forget bool
	why    string
}

// orphanGrace is for pods whose object is gone: nobody is left to say how long to wait.
const orphanGrace = time.Second

// endReason says whether the pod is to end; nil: it is to run.
func (in input) endReason() *ending {
	switch pod := in.pod; {
	case pod == nil:
		return &ending{grace: orphanGrace, forget: true, why: "Stopping container %s"}
	case pod.DeletionTimestamp != nil:
		return &ending{grace: in.deletionGrace(), forget: true, why: "Stopping container %s"}
	case in.mem.rejected != nil, finished(pod.Status.Phase):
		return &ending{grace: specGrace(pod), why: "Stopping container %s"}
	case expired(pod, in.now):
		return &ending{grace: specGrace(pod), why: "Stopping container %s, which ran longer than the pod's activeDeadlineSeconds"}
	case allOver(in):
		return &ending{grace: specGrace(pod)}
	}
	return nil
}

func specGrace(pod *corev1.Pod) time.Duration {
	if g := pod.Spec.TerminationGracePeriodSeconds; g != nil {
		return time.Duration(max(*g, 0)) * time.Second
	}
	return corev1.DefaultTerminationGracePeriodSeconds * time.Second
}

// deletionGrace is what is left of the grace since the kubelet has heard of the deletion, by a clock that nobody
// sets: the time stamp was made by another, or before it was set. After a start of the daemon it begins
// anew, as in Kubernetes.
func (in input) deletionGrace() time.Duration {
	whole := specGrace(in.pod)
	if g := in.pod.DeletionGracePeriodSeconds; g != nil {
		whole = time.Duration(max(*g, 0)) * time.Second
	}
	if in.mem.deletionSeen.IsZero() {
		return whole
	}
	return max(0, whole-in.now.Sub(in.mem.deletionSeen))
}

func finished(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

// deadline is when activeDeadlineSeconds ends the pod; zero: never, or not started.
func deadline(pod *corev1.Pod) time.Time {
	if pod.Spec.ActiveDeadlineSeconds == nil || pod.Status.StartTime == nil {
		return time.Time{}
	}
	return pod.Status.StartTime.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second)
}

func expired(pod *corev1.Pod, now time.Time) bool {
	t := deadline(pod)
	return !t.IsZero() && !now.Before(t)
}

// allOver says that every main container has run and none is to run again, or that it will not come to
// that, because an init container has failed. Sidecars do not keep a pod going.
func allOver(in input) bool {
	if in.initFailed() {
		return true
	}
	for i := range in.pod.Spec.Containers {
		name := in.pod.Spec.Containers[i].Name
		if in.mem.inFlight(action{verb: startContainer, container: name}.key()) {
			return false
		}
		if c := newest(in.view, name); c != nil {
			if c.State != cri.Exited || in.runsAgain(c) {
				return false
			}
			continue
		}
		// The runtime has lost it; the status remembers how it ended.
		t := lastTermination(in.pod, name)
		if t == nil || restarts(in.pod, name, t.ExitCode) {
			return false
		}
	}
	return true
}

// minSidecarGrace is how long a sidecar has at least, when the others have used up the pod's time.
const minSidecarGrace = 2 * time.Second

// stopAll stops whatever runs, and says whether anything does, or may begin to. Sidecars serve the others
// to their end: they are stopped after them, the last one first.
func (d *decision) stopAll(grace time.Duration, why string) bool {
	others, busy := false, false
	sidecar := func(name string) bool { return d.pod != nil && sidecarNamed(d.pod, name) }
	for i := range d.view.Containers {
		c := &d.view.Containers[i]
		if c.State != cri.Running {
			continue
		}
		busy = true
		if !sidecar(c.Name) {
			others = true
			d.stop(c, grace, why)
		}
	}
	for _, f := range d.mem.flights {
		if f.act.verb == startContainer || f.act.verb == stopContainer {
			busy = true
			others = others || !sidecar(f.act.container)
		}
	}
	if others || !busy || d.pod == nil {
		return busy
	}
	for _, spec := range slices.Backward(d.pod.Spec.InitContainers) {
		if !isSidecar(&spec) {
			continue
		}
		running := false
		for i := range d.view.Containers {
			if c := &d.view.Containers[i]; c.Name == spec.Name && c.State == cri.Running {
				running = true
				d.stop(c, max(grace, minSidecarGrace), why)
			}
		}
		if running || d.mem.inFlight(action{verb: startContainer, container: spec.Name}.key()) {
			break
		}
	}
	return busy
}

// stop stops c unless a stop that ends no later is under way.
func (d *decision) stop(c *cri.Container, grace time.Duration, why string) {
	by := d.now.Add(grace)
	for _, f := range d.mem.flights {
		if f.act.verb == stopContainer && f.act.id == c.ID && !f.deadline.After(by.Add(time.Second)) {
			return
		}
	}
	d.begin(action{verb: stopContainer, container: c.Name, id: c.ID, attempt: c.Attempt, grace: grace, why: why})
}

// end decides for a pod that is to go down: each stage waits for the one before.
func (d *decision) end(e ending) {
	if d.stopAll(e.grace, e.why) || d.building() {
		return
	}
	if d.pod != nil && !d.settled {
		return // how it ended must be known before what ended is removed; the write wakes us
	}
	for _, c := range d.view.Containers {
		d.begin(action{verb: removeContainer, container: c.Name, id: c.ID, attempt: c.Attempt})
	}
	if len(d.view.Containers) > 0 {
		return
	}
	if d.view.Sandbox != nil {
		d.begin(action{verb: removeSandbox})
		return
	}
	if !d.mem.tornDown || e.forget && !d.mem.forgotten {
		d.begin(action{verb: tearDown})
		return
	}
	if !e.forget {
		return // a finished pod stays in the API until somebody deletes it
	}
	if d.pod != nil && !d.mem.deleted {
		d.begin(action{verb: deleteObject})
		return
	}
	d.plan.done = len(d.mem.flights) == 0
}

// building says that a stage is being made, so that its undo has to wait.
func (d *decision) building() bool {
	return slices.ContainsFunc([]verb{setUpVolumes, makeSandbox}, func(v verb) bool {
		return d.mem.inFlight(action{verb: v}.key())
	})
}
