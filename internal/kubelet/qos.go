package kubelet

import (
	"minik8s/internal/api/podspec"

	corev1 "k8s.io/api/core/v1"
)

// qosOf is the pod's quality of service: the one that the API has written down, since it cannot change.
func qosOf(pod *corev1.Pod) corev1.PodQOSClass {
	if pod.Status.QOSClass != "" {
		return pod.Status.QOSClass
	}
	return podspec.QOSClass(&pod.Spec)
}
