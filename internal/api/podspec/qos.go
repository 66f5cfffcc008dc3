package podspec

import corev1 "k8s.io/api/core/v1"

// QOSClass returns the quality of service that follows from a pod's requests and limits: Guaranteed if every container
// has limits for CPU and memory and requests equal to them, BestEffort if no container requests anything, otherwise
// Burstable. It is Kubernetes' rule (ComputePodQOS in pkg/apis/core/v1/helper/qos). Zero counts as no request, so a
// request of zero below a limit makes the pod Burstable. A limit without a request counts as both, so the result is the
// same before and after the defaults are applied.
func QOSClass(spec *corev1.PodSpec) corev1.PodQOSClass {
	asks, guaranteed := false, true
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			r := &containers[i].Resources
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				limit := r.Limits[name]
				request, given := r.Requests[name]
				if !given {
					request = limit
				}
				asks = asks || limit.Sign() > 0 || request.Sign() > 0
				guaranteed = guaranteed && limit.Sign() > 0 && request.Cmp(limit) == 0
			}
		}
	}
	switch {
	case !asks:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}

// QOSClassOf returns the pod's quality of service from its status, since it cannot change.
func QOSClassOf(pod *corev1.Pod) corev1.PodQOSClass {
	if pod.Status.QOSClass != "" {
		return pod.Status.QOSClass
	}
	return QOSClass(&pod.Spec)
}
