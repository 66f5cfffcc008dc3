package kubelet

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/kubelet/cri"
)

// containerIDPrefix is how Kubernetes writes the runtime into a container's id.
const containerIDPrefix = "containerd://"

const reasonErrImagePull = "ErrImagePull"

// reasonLost is the reason of an end that nobody saw.
const reasonLost = "ContainerStatusUnknown"

// statusFor is the pod's status as it follows from in: Kubernetes' own rules. It is pure. What
// others own in the status (conditions that are not the kubelet's) is kept.
func statusFor(in input, hostIP netip.Addr) corev1.PodStatus {
	pod := in.pod
	if finished(pod.Status.Phase) && in.mem.rejected == nil {
		return pod.Status // how a pod ended does not change any more
	}
	st := *pod.Status.DeepCopy()
	st.ObservedGeneration = pod.Generation
	st.QOSClass = qosOf(pod)
	if st.StartTime == nil {
		now := metav1.NewTime(in.now).Rfc3339Copy()
		st.StartTime = &now
	}
	if hostIP.IsValid() {
		st.HostIP, st.HostIPs = hostIP.String(), []corev1.HostIP{{IP: hostIP.String()}}
	}
	if v := in.mem.rejected; v != nil {
		st.Phase, st.Reason, st.Message = corev1.PodFailed, v.reason, "Pod was rejected: "+v.message
		return st
	}
	setAddresses(&st, in)
	st.ContainerStatuses, st.InitContainerStatuses = containerStatuses(in), initStatuses(in)
	st.EphemeralContainerStatuses = ephemeralStatuses(in)
	st.Phase = phaseOf(in, st.ContainerStatuses)
	if expired(pod, in.now) && !overInTime(pod, st.ContainerStatuses) {
		st.Reason, st.Message = "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
		if !active(in) {
			endUnbegun(&st)
		}
	}
	// Whoever counts how pods end, as jobs do, must not wait for one that will never have begun.
	if pod.DeletionTimestamp != nil && !active(in) && !finished(st.Phase) {
		endUnbegun(&st)
	}
	if finished(st.Phase) {
		for i := range st.ContainerStatuses {
			st.ContainerStatuses[i].Ready = false
		}
	}
	setConditions(in, &st)
	return st
}

// endUnbegun fails a pod that ends before all of its containers have begun.
func endUnbegun(st *corev1.PodStatus) {
	st.Phase = corev1.PodFailed
	neverBegun(st.ContainerStatuses)
	neverBegun(st.InitContainerStatuses)
	neverBegun(st.EphemeralContainerStatuses)
}

// neverBegun ends the containers that still wait for a start which will not come, in Kubernetes' words.
func neverBegun(list []corev1.ContainerStatus) {
	for i := range list {
		if list[i].State.Waiting != nil {
			list[i].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137,
				Reason: reasonLost, Message: "The container could not be located when the pod was terminated"}}
		}
	}
}

// setAddresses takes the pod's addresses from its sandbox. One that is at its end keeps the last known, by
// which it can be told; one that waits for a new sandbox, after a reboot, has none: they are another
// pod's by now.
func setAddresses(st *corev1.PodStatus, in input) {
	sandbox := in.view.Sandbox
	if sandbox == nil && in.endReason() == nil {
		st.PodIP, st.PodIPs = "", nil
	}
	if sandbox == nil || len(sandbox.Addresses) == 0 {
		return
	}
	st.PodIP = sandbox.Addresses[0].String()
	st.PodIPs = nil
	for _, a := range sandbox.Addresses {
		st.PodIPs = append(st.PodIPs, corev1.PodIP{IP: a.String()})
	}
}

// overInTime says that the containers had all ended, for good, before the deadline of the pod.
func overInTime(pod *corev1.Pod, statuses []corev1.ContainerStatus) bool {
	for i := range statuses {
		t := statuses[i].State.Terminated
		if t == nil || restarts(pod, statuses[i].Name, t.ExitCode) || t.FinishedAt.After(deadline(pod)) || t.FinishedAt.Time.Equal(deadline(pod)) {
			return false
		}
	}
	return true
}

// active says that a container runs, or may begin to.
func active(in input) bool {
	for _, c := range in.view.Containers {
		if c.State == cri.Running {
			return true
		}
	}
	for _, f := range in.mem.flights {
		if f.act.verb == startContainer {
			return true
		}
	}
	return false
}

// phaseOf sums up the containers.
func phaseOf(in input, statuses []corev1.ContainerStatus) corev1.PodPhase {
	var running, waiting, stopped, succeeded int
	for i := range statuses {
		switch st := &statuses[i]; {
		case st.State.Running != nil:
			running++
		case st.State.Terminated != nil:
			stopped++
			if st.State.Terminated.ExitCode == 0 {
				succeeded++
			}
		case st.LastTerminationState.Terminated != nil: // waits to be started again
			stopped++
		default:
			waiting++
		}
	}
	// A pod that is to go ends in a final phase once nothing runs, whatever its restartPolicy.
	if e := in.endReason(); e != nil && !active(in) && waiting+running == 0 {
		if succeeded == len(statuses) {
			return corev1.PodSucceeded
		}
		return corev1.PodFailed
	}
	switch {
	case in.initFailed() && !active(in):
		return corev1.PodFailed
	case waiting > 0, in.endReason() == nil && !in.initialized():
		return corev1.PodPending
	case running == 0 && len(in.pod.Spec.InitContainers)+len(in.pod.Spec.EphemeralContainers) > 0 && active(in): // others have yet to end
		return corev1.PodRunning
	case running > 0, in.pod.Spec.RestartPolicy == corev1.RestartPolicyAlways, in.pod.Spec.RestartPolicy == "", in.changing():
		return corev1.PodRunning
	case stopped == succeeded:
		return corev1.PodSucceeded
	case in.pod.Spec.RestartPolicy == corev1.RestartPolicyNever:
		return corev1.PodFailed
	default:
		return corev1.PodRunning
	}
}

// changing says that a container has ended to begin again: with another image, or because it failed a
// probe or a hook.
func (in input) changing() bool {
	for i := range in.pod.Spec.Containers {
		if c := newestStarted(in.view, in.pod.Spec.Containers[i].Name); c != nil && (imageChanged(in.pod, c) || in.healthOf(c).condemned != nil && in.runsAgain(c)) {
			return true
		}
	}
	return false
}

// statusIn is the status of a container of whatever kind.
func statusIn(st *corev1.PodStatus, name string) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{st.ContainerStatuses, st.InitContainerStatuses, st.EphemeralContainerStatuses} {
		if c := statusOf(list, name); c != nil {
			return c
		}
	}
	return nil
}

func statusOf(list []corev1.ContainerStatus, name string) *corev1.ContainerStatus {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

// containerNamed is the container of that name, of whatever kind; nil if the pod has none.
func containerNamed(pod *corev1.Pod, name string) *corev1.Container {
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	if e := ephemeralNamed(pod, name); e != nil {
		return (*corev1.Container)(&e.EphemeralContainerCommon)
	}
	return nil
}
