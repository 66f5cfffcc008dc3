package kubelet

import (
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/cri"
)

// due lists the containers that are to be started now, and wakes for those that are to be later.
func (d *decision) due() []action {
	var due []action
	initialized := d.initialized()
	for _, spec := range allContainers(d.pod) {
		isInit := initNamed(d.pod, spec.Name) != nil
		switch {
		case initialized && isInit && !isSidecar(spec):
			continue // its work is done for good
		case !initialized && isInit && d.initDone(spec):
			if isSidecar(spec) {
				due = d.addDue(due, spec.Name) // its image may have changed
			}
			continue
		}
		due = d.addDue(due, spec.Name)
		if !initialized && isInit {
			break // all others wait for this one
		}
	}
	for i := range d.pod.Spec.EphemeralContainers {
		due = d.addDue(due, d.pod.Spec.EphemeralContainers[i].Name)
	}
	return due
}

// addDue adds the start of the container of that name to due if it is to be started now.
func (d *decision) addDue(due []action, name string) []action {
	a := action{verb: startContainer, container: name}
	if d.mem.inFlight(a.key()) {
		return due
	}
	once := initNamed(d.pod, name) != nil && !sidecarNamed(d.pod, name)
	c := newest(d.view, name)
	switch {
	case c == nil && ephemeralNamed(d.pod, name) != nil && hasRun(d.pod, name):
		return due
	case c == nil:
		// An init container whose end nobody but the status knows of is run again: the sandbox is new.
		if t := lastTermination(d.pod, name); t != nil && !once && !restarts(d.pod, name, t.ExitCode) {
			return due
		}
		a.attempt = nextAttempt(d.pod, name)
	case c.State == cri.Created:
		// Nobody is at it: its making ended half-way, with the daemon perhaps. A start that was cut
		// off cannot be repeated (runc would wait for ever), so it is made anew.
		d.begin(action{verb: removeContainer, container: name, id: c.ID, attempt: c.Attempt})
		return due
	case c.State == cri.Running:
		if imageChanged(d.pod, c) {
			d.stop(c, specGrace(d.pod), "Container %s definition changed, will be restarted")
		} else if s := d.healthOf(c).condemned; s != nil {
			d.stop(c, condemnedGrace(d.pod, s), s.why)
		}
		return due
	case once && !d.ofSandbox(c):
		a.attempt = max(c.Attempt+1, nextAttempt(d.pod, name))
	case !d.runsAgain(c):
		return due
	default:
		if t, _ := d.memoryOf(name).restartAt(c); d.now.Before(t) && !imageChanged(d.pod, c) {
			d.wakeAt(t)
			return due
		}
		a.attempt = max(c.Attempt+1, nextAttempt(d.pod, name))
	}
	if d.waits(a.key()) {
		return due
	}
	return append(due, a)
}

// nextAttempt is the attempt to make if the runtime knows of none: restart counts never fall.
func nextAttempt(pod *corev1.Pod, name string) int {
	st := statusIn(&pod.Status, name)
	if st == nil {
		return 0
	}
	if st.ContainerID != "" { // that many restarts, and the last attempt did exist
		return int(st.RestartCount) + 1
	}
	return int(st.RestartCount)
}

// lastTermination is how the container ended for good according to the status; nil if it did not.
func lastTermination(pod *corev1.Pod, name string) *corev1.ContainerStateTerminated {
	if st := statusIn(&pod.Status, name); st != nil && st.ContainerID != "" {
		return st.State.Terminated
	}
	return nil
}

// restarts says whether a container that has exited so is to run again. An init container that has done
// its work is not.
func restarts(pod *corev1.Pod, name string, exitCode int32) bool {
	if ephemeralNamed(pod, name) != nil {
		return false
	}
	if c := initNamed(pod, name); c != nil {
		return isSidecar(c) || exitCode != 0 && pod.Spec.RestartPolicy != corev1.RestartPolicyNever
	}
	switch pod.Spec.RestartPolicy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return exitCode != 0
	default:
		return true
	}
}

// runsAgain says whether the exited container c is to be followed by another attempt: by the pod's
// restartPolicy, or because it was stopped to be begun anew: the pod names another image now, or a probe
// or a hook has failed.
func (in input) runsAgain(c *cri.Container) bool {
	return restarts(in.pod, c.Name, c.ExitCode) || imageChanged(in.pod, c) ||
		in.healthOf(c).condemned != nil && (in.pod.Spec.RestartPolicy != corev1.RestartPolicyNever || sidecarNamed(in.pod, c.Name))
}

// imageChanged says that the pod names another image than the one c was made from. It is the one field
// of a container that may change.
func imageChanged(pod *corev1.Pod, c *cri.Container) bool {
	spec := containerNamed(pod, c.Name)
	return spec != nil && c.Image != "" && c.Image != spec.Image
}
