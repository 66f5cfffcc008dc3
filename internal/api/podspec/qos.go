package podspec

import corev1 "k8s.io/api/core/v1"

// QOSClass is the quality of service that a pod's requests and limits earn it: Guaranteed if every container
// limits CPU and memory and requests just as much, BestEffort if none asks for anything, otherwise
// Burstable. It is Kubernetes' rule (ComputePodQOS in pkg/apis/core/v1/helper/qos): an amount of zero asks
// for nothing, so a request of zero below a limit makes the pod Burstable. A limit without a request counts
// as both: the answer is the same before and after the defaults.
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

// QOSClassOf is the pod's quality of service: the one that the API has written down, since it cannot change.
func QOSClassOf(pod *corev1.Pod) corev1.PodQOSClass {
	if pod.Status.QOSClass != "" {
		return pod.Status.QOSClass
	}
	return QOSClass(&pod.Spec)
}
