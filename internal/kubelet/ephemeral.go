package kubelet

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/cri"
)

// Ephemeral containers are added to a pod while it runs, to look at it. Each is run once, as soon as the pod has a
// sandbox, and never again, whatever becomes of it. The pod neither waits for them nor goes on for them: they count
// for no phase and no condition, and end with the others.

// ephemeralNamed is the ephemeral container of that name; nil if it is another's.
func ephemeralNamed(pod *corev1.Pod, name string) *corev1.EphemeralContainer {
	for i := range pod.Spec.EphemeralContainers {
		if pod.Spec.EphemeralContainers[i].Name == name {
			return &pod.Spec.EphemeralContainers[i]
		}
	}
	return nil
}

// everyContainer is the pod's containers of all kinds, the ephemeral ones last.
func everyContainer(pod *corev1.Pod) []*corev1.Container {
	out := allContainers(pod)
	for i := range pod.Spec.EphemeralContainers {
		out = append(out, (*corev1.Container)(&pod.Spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	return out
}

// hasRun says that the status knows of a run of the container, which the runtime may have lost since.
func hasRun(pod *corev1.Pod, name string) bool {
	st := statusIn(&pod.Status, name)
	return st != nil && st.ContainerID != ""
}

// targetOf names the container whose processes an ephemeral container of that name wants to see; empty: it
// wants to see none, or sees those of all containers anyway.
func targetOf(pod *corev1.Pod, name string) string {
	e := ephemeralNamed(pod, name)
	if e == nil || pod.Spec.HostPID || deref(pod.Spec.ShareProcessNamespace, false) {
		return ""
	}
	return e.TargetContainerName
}

// targetID is the running container of the runtime that targetOf names. Where there is none, missing is for people;
// the container is not started before there is.
func targetID(pod *corev1.Pod, view cri.Pod, name string) (id, missing string) {
	target := targetOf(pod, name)
	if target == "" {
		return "", ""
	}
	if c := newest(view, target); c != nil && c.State == cri.Running {
		return c.ID, ""
	}
	return "", fmt.Sprintf("the target container %q is not running", target)
}

// ephemeralStatuses is one status per ephemeral container, in the order of their names. They are never ready.
func ephemeralStatuses(in input) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for i := range in.pod.Spec.EphemeralContainers {
		st := containerStatus(in, (*corev1.Container)(&in.pod.Spec.EphemeralContainers[i].EphemeralContainerCommon))
		st.Ready, st.Started = false, nil
		out = append(out, st)
	}
	sortByName(out)
	return out
}
