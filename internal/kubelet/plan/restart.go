package plan

import (
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/cri"
)

// RestartPolicyAllows reports whether the container of that name runs again after it has exited with exitCode. The
// pod's restartPolicy decides, or a sidecar's own. Init containers that succeeded do not run again, and ephemeral
// containers never do. It is Kubernetes' rule (ShouldContainerBeRestarted in pkg/kubelet/container/helpers.go).
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
// because the kubelet stopped it for a restart, after the pod's image changed, or a probe or a hook failed.
func (in Input) WillRestart(c *cri.Container) bool {
	return RestartPolicyAllows(in.Pod, c.Name, c.ExitCode) || ImageChanged(in.Pod, c) ||
		in.HealthOf(c).Kill != nil && (in.Pod.Spec.RestartPolicy != corev1.RestartPolicyNever || podspec.HasSidecar(in.Pod, c.Name))
}

// ImageChanged reports whether the pod's image differs from the one that c was made from. The image is the only field
// of a container that may change.
func ImageChanged(pod *corev1.Pod, c *cri.Container) bool {
	spec := podspec.Container(pod, c.Name)
	return spec != nil && c.Image != "" && c.Image != spec.Image
}
