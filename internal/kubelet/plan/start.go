package plan

import (
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/cri"
)

// startable returns the actions for containers that should start now. It also sets the worker's wake-up for those in
// back-off.
func (p *planner) startable() []Action {
	var starts []Action
	initialized := p.Initialized()
	for _, spec := range podspec.Containers(p.Pod) {
		isInit := podspec.InitContainer(p.Pod, spec.Name) != nil
		switch {
		case initialized && isInit && !podspec.IsSidecar(spec):
			continue // it is done for good
		case !initialized && isInit && p.initDone(spec):
			if podspec.IsSidecar(spec) {
				starts = p.addStart(starts, spec.Name) // its image may have changed
			}
			continue
		}
		starts = p.addStart(starts, spec.Name)
		if !initialized && isInit {
			break // all others wait for it
		}
	}
	for i := range p.Pod.Spec.EphemeralContainers {
		starts = p.addStart(starts, p.Pod.Spec.EphemeralContainers[i].Name)
	}
	return starts
}

// addStart appends to starts the start of the container of that name, if it should start now. If it runs but should
// not, or was only partly created, it is stopped or removed instead.
func (p *planner) addStart(starts []Action, name string) []Action {
	a := Action{Verb: StartContainer, Container: name}
	if p.State.IsInProgress(a.Key()) {
		return starts
	}
	runsOnce := podspec.InitContainer(p.Pod, name) != nil && !podspec.HasSidecar(p.Pod, name)
	c := Newest(p.View, name)
	switch {
	case c == nil && podspec.EphemeralContainer(p.Pod, name) != nil && hasRun(p.Pod, name):
		return starts
	case c == nil:
		// An init container whose end is only in the status runs again, since the sandbox is new.
		if t := lastTermination(p.Pod, name); t != nil && !runsOnce && !RestartPolicyAllows(p.Pod, name, t.ExitCode) {
			return starts
		}
		a.Attempt = NextAttempt(p.Pod, name)
	case c.State == cri.Created:
		// No start is in progress, so an earlier one was interrupted, perhaps because the daemon ended. It cannot be
		// repeated (runc would wait forever), so the container is created again.
		p.add(Action{Verb: RemoveContainer, Container: name, ID: c.ID, Attempt: c.Attempt})
		return starts
	case c.State == cri.Running:
		if ImageChanged(p.Pod, c) {
			p.stop(c, gracePeriod(p.Pod), "Container %s definition changed, will be restarted")
		} else if s := p.HealthOf(c).Kill; s != nil {
			p.stop(c, killGrace(p.Pod, s), s.Why)
		}
		return starts
	case runsOnce && !p.inSandbox(c):
		a.Attempt = max(c.Attempt+1, NextAttempt(p.Pod, name))
	case !p.WillRestart(c):
		return starts
	default:
		if t, _ := p.Container(name).RestartAt(c); p.Now.Before(t) && !ImageChanged(p.Pod, c) {
			p.wakeAt(t)
			return starts
		}
		a.Attempt = max(c.Attempt+1, NextAttempt(p.Pod, name))
	}
	if p.waitsForRetry(a.Key()) {
		return starts
	}
	return append(starts, a)
}

// NextAttempt returns the next attempt number if the runtime knows of no attempt. Restart counts must never decrease.
func NextAttempt(pod *corev1.Pod, name string) int {
	st := podspec.ContainerStatus(&pod.Status, name)
	if st == nil {
		return 0
	}
	if st.ContainerID != "" { // restartCount restarts, and the last attempt existed
		return int(st.RestartCount) + 1
	}
	return int(st.RestartCount)
}

// lastTermination returns how the container ended for good, according to the status; nil if it did not.
func lastTermination(pod *corev1.Pod, name string) *corev1.ContainerStateTerminated {
	if st := podspec.ContainerStatus(&pod.Status, name); st != nil && st.ContainerID != "" {
		return st.State.Terminated
	}
	return nil
}

// hasRun reports whether the status says that the container has run, even if the runtime no longer has it.
func hasRun(pod *corev1.Pod, name string) bool {
	st := podspec.ContainerStatus(&pod.Status, name)
	return st != nil && st.ContainerID != ""
}
