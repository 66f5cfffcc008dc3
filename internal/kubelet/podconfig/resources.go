package podconfig

import (
	"math"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/cri"
)

// The formulas are Kubernetes' (pkg/kubelet/cm/helpers_linux.go and pkg/kubelet/qos/policy.go).
const (
	minShares, maxShares = 2, 262144
	sharesPerCPU         = 1024
	quotaPeriod          = 100000 // microseconds
	minQuota             = 1000

	guaranteedOOMScore = -997
	bestEffortOOMScore = 1000
)

// milliToShares is the cpu.shares of a request in thousandths of a CPU.
func milliToShares(milli int64) uint64 {
	if milli <= 0 {
		return minShares
	}
	return uint64(min(max(milli*sharesPerCPU/1000, minShares), maxShares))
}

// milliToQuota is the microseconds in each quotaPeriod for a limit; 0: no limit.
func milliToQuota(milli int64) int64 {
	if milli <= 0 {
		return 0
	}
	return max(milli*quotaPeriod/1000, minQuota)
}

// containerResources are the cgroup settings of one container.
func containerResources(c *corev1.Container) cri.Resources {
	r := c.Resources
	request := r.Requests.Cpu().MilliValue()
	if _, asked := r.Requests[corev1.ResourceCPU]; !asked {
		request = r.Limits.Cpu().MilliValue()
	}
	res := cri.Resources{CPUShares: milliToShares(request), MemoryLimit: r.Limits.Memory().Value()}
	if q := milliToQuota(r.Limits.Cpu().MilliValue()); q > 0 {
		res.CPUQuota, res.CPUPeriod = q, quotaPeriod
	}
	return res
}

// PodResources are the cgroup settings of the pod as a whole: limits count only if every container has one, because
// otherwise one container is unlimited.
func PodResources(pod *corev1.Pod) cri.Resources {
	res := cri.Resources{CPUShares: milliToShares(podspec.Requests(&pod.Spec)[corev1.ResourceCPU])}
	if cpu, limited := podspec.Limit(&pod.Spec, corev1.ResourceCPU); limited {
		if q := milliToQuota(cpu); q > 0 {
			res.CPUQuota, res.CPUPeriod = q, quotaPeriod
		}
	}
	if mem, limited := podspec.Limit(&pod.Spec, corev1.ResourceMemory); limited {
		res.MemoryLimit = mem
	}
	return res
}

// oomScoreAdj is the container's score for the OOM killer: the smaller its memory request, the sooner it is killed;
// Guaranteed pods last. capacity is the node's memory in bytes.
func oomScoreAdj(pod *corev1.Pod, c *corev1.Container, capacity int64) int {
	if pod.Spec.PriorityClassName == api.SystemNodeCritical {
		return guaranteedOOMScore // the node does not work without it
	}
	switch podspec.QOSClassOf(pod) {
	case corev1.PodQOSGuaranteed:
		return guaranteedOOMScore
	case corev1.PodQOSBestEffort:
		return bestEffortOOMScore
	}
	if capacity <= 0 {
		return bestEffortOOMScore - 1
	}
	share := math.Floor(1000 * float64(c.Resources.Requests.Memory().Value()) / float64(capacity))
	score := 1000 - int(share)
	return min(max(score, 1000+guaranteedOOMScore), bestEffortOOMScore-1)
}
