package plan

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/cri"
)

// Ephemeral containers are added to a running pod in order to inspect it (KEP-277). Each runs once, as soon as the pod
// has a sandbox, and is never restarted. The pod does not wait for them and does not keep running for them. They do not
// affect its phase and conditions, and end with the other containers.

// targetOf returns the name of the container whose processes an ephemeral container should see. It is empty if there is
// none, or if the ephemeral container sees the processes of all containers anyway.
func targetOf(pod *corev1.Pod, name string) string {
	e := podspec.EphemeralContainer(pod, name)
	if share := pod.Spec.ShareProcessNamespace; e == nil || pod.Spec.HostPID || share != nil && *share {
		return ""
	}
	return e.TargetContainerName
}

// TargetID returns the id of the running container whose processes the named container should see; empty if it needs
// none. If the one it needs does not run, missing says so, and the container must not be started yet.
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
