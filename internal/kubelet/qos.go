package kubelet

import (
	corev1 "k8s.io/api/core/v1"
)

// qosOf is the pod's class of service, by Kubernetes' rule: Guaranteed if every container limits
// cpu and memory and requests just that, BestEffort if none asks for anything, else Burstable.
func qosOf(pod *corev1.Pod) corev1.PodQOSClass {
	if pod.Status.QOSClass != "" {
		return pod.Status.QOSClass
	}
	any, guaranteed := false, true
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			r := &list[i].Resources
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				limit, hasLimit := r.Limits[name]
				request, hasRequest := r.Requests[name]
				hasLimit, hasRequest = hasLimit && !limit.IsZero(), hasRequest && !request.IsZero()
				any = any || hasLimit || hasRequest
				if !hasLimit || hasRequest && request.Cmp(limit) != 0 {
					guaranteed = false
				}
			}
		}
	}
	switch {
	case !any:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	default:
		return corev1.PodQOSBurstable
	}
}
