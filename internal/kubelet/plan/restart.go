package plan

import (
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/cri"
)

// RestartPolicyAllows reports whether the container of that name runs again after it has exited with exitCode, by the
// pod's restartPolicy or, of a sidecar, its own. Init containers that succeeded do not, and ephemeral containers
// never do. It is Kubernetes' rule (ShouldContainerBeRestarted in pkg/kubelet/container/helpers.go).
func RestartPolicyAllows(pod *corev1.Pod, name string, exitCode int32) bool {
	if podspec.EphemeralContainer(pod, name) != nil {
		return false
	}
	if c := podspec.InitContainer(pod, name); c != nil {
		return podspec.IsSidecar(c) || exitCode != 0 && pod.Spec.RestartPolicy != corev1.RestartPolicyNever
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

// WillRestart reports whether another attempt follows the exited container c: because the restart policy says so, or
// because the kubelet stopped it to restart it, since the pod names another image now, or since a probe or a hook
// failed.
func (in Input) WillRestart(c *cri.Container) bool {
	return RestartPolicyAllows(in.Pod, c.Name, c.ExitCode) || ImageChanged(in.Pod, c) ||
		in.HealthOf(c).Kill != nil && (in.Pod.Spec.RestartPolicy != corev1.RestartPolicyNever || podspec.HasSidecar(in.Pod, c.Name))
}

// ImageChanged reports whether the pod names another image than the one c was made from. The image is the one field
// of a container that may change.
func ImageChanged(pod *corev1.Pod, c *cri.Container) bool {
	spec := podspec.Container(pod, c.Name)
	return spec != nil && c.Image != "" && c.Image != spec.Image
}
