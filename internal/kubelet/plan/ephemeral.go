package plan

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/cri"
)

// Ephemeral containers are added to a pod while it runs, to look into it (KEP-277). Each runs once, as soon as the
// pod has a sandbox, and is never restarted. The pod neither waits for them nor keeps running for them: they do not
// affect its phase and conditions, and end with the others.

// targetOf names the container whose processes the ephemeral container of that name is to see; empty: none, or
// it sees those of all containers anyway.
func targetOf(pod *corev1.Pod, name string) string {
	e := podspec.EphemeralContainer(pod, name)
	if share := pod.Spec.ShareProcessNamespace; e == nil || pod.Spec.HostPID || share != nil && *share {
		return ""
	}
	return e.TargetContainerName
}

// TargetID is the id of the running container whose processes the container of that name is to see; empty if it
// needs none. If it needs one that does not run, missing says so, and the container is not started yet.
func TargetID(pod *corev1.Pod, view cri.Pod, name string) (id, missing string) {
	target := targetOf(pod, name)
	if target == "" {
		return "", ""
	}
	if c := Newest(view, target); c != nil && c.State == cri.Running {
		return c.ID, ""
	}
	return "", fmt.Sprintf("the target container %q is not running", target)
}
