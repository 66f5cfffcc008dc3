package defaults

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// QOSClass is the quality of service that a pod's requests and limits earn it: Guaranteed if every
// container limits CPU and memory and requests just as much, BestEffort if none asks for anything,
// otherwise Burstable. A limit without a request counts as both, so that the answer is the same before
// and after PodSpec.
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
				asks = asks || positive(limit) || positive(request)
				guaranteed = guaranteed && positive(limit) && request.Cmp(limit) == 0
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

func positive(q resource.Quantity) bool { return q.Sign() > 0 }
