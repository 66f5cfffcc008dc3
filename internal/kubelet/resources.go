package kubelet

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"minik8s/internal/api"
	"minik8s/internal/kubelet/cri"
)

// The formulas are Kubernetes'.
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

// podResources are the cgroup settings of the pod as a whole: limits count only if every container
// has one, for else one of them may use all there is.
func podResources(pod *corev1.Pod) cri.Resources {
	requests := podRequests(pod)
	res := cri.Resources{CPUShares: milliToShares(requests.Cpu().MilliValue())}
	if cpu, all := podLimit(pod, corev1.ResourceCPU); all {
		if q := milliToQuota(cpu.MilliValue()); q > 0 {
			res.CPUQuota, res.CPUPeriod = q, quotaPeriod
		}
	}
	if mem, all := podLimit(pod, corev1.ResourceMemory); all {
		res.MemoryLimit = mem.Value()
	}
	return res
}

// podRequests is what the pod asks of a node.
func podRequests(pod *corev1.Pod) corev1.ResourceList {
	total := together(pod, requestsOf)
	if r := pod.Spec.Resources; r != nil { // what the pod says as a whole replaces the sums
		for name, q := range r.Requests {
			total[name] = q
		}
	}
	add(total, pod.Spec.Overhead)
	return total
}

// together is what the pod's containers come to: the sum of those that run side by side, or what the
// greediest init container needs beside the sidecars before it, if that is more.
func together(pod *corev1.Pod, of func(*corev1.Container) corev1.ResourceList) corev1.ResourceList {
	total := corev1.ResourceList{}
	for i := range pod.Spec.Containers {
		add(total, of(&pod.Spec.Containers[i]))
	}
	sidecars, peak := corev1.ResourceList{}, corev1.ResourceList{}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		r := of(c)
		if isSidecar(c) {
			add(total, r)
			add(sidecars, r)
			raise(peak, sidecars)
			continue
		}
		need := sidecars.DeepCopy()
		add(need, r)
		raise(peak, need)
	}
	raise(total, peak)
	return total
}

// requestsOf is what a container asks for; where it only sets a limit, that much.
func requestsOf(c *corev1.Container) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, q := range c.Resources.Limits {
		out[name] = q
	}
	for name, q := range c.Resources.Requests {
		out[name] = q
	}
	return out
}

// podLimit is what the containers may use together, and whether all of them have a limit.
func podLimit(pod *corev1.Pod, name corev1.ResourceName) (resource.Quantity, bool) {
	if r := pod.Spec.Resources; r != nil {
		if q, ok := r.Limits[name]; ok {
			return q, true
		}
	}
	for _, c := range allContainers(pod) {
		if q, ok := c.Resources.Limits[name]; !ok || q.IsZero() {
			return resource.Quantity{}, false
		}
	}
	sum := together(pod, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Limits })[name]
	sum.Add(pod.Spec.Overhead[name])
	return sum, true
}

func add(to, more corev1.ResourceList) {
	for name, q := range more {
		sum := to[name]
		sum.Add(q)
		to[name] = sum
	}
}

// raise lifts each amount in to to at least that in least.
func raise(to, least corev1.ResourceList) {
	for name, q := range least {
		if have, ok := to[name]; !ok || have.Cmp(q) < 0 {
			to[name] = q
		}
	}
}

// oomScoreAdj is how soon the kernel picks the container when memory runs out: the more it uses
// beyond its request the sooner, Guaranteed pods last. capacity is the node's memory in bytes.
func oomScoreAdj(pod *corev1.Pod, c *corev1.Container, capacity int64) int {
	if pod.Spec.PriorityClassName == api.SystemNodeCritical {
		return guaranteedOOMScore // the node does not work without it
	}
	switch qosOf(pod) {
	case corev1.PodQOSGuaranteed:
		return guaranteedOOMScore
	case corev1.PodQOSBestEffort:
		return bestEffortOOMScore
	}
	if capacity <= 0 {
		return bestEffortOOMScore - 1
	}
	request := requestsOf(c)
	share := math.Floor(1000 * float64(request.Memory().Value()) / float64(capacity))
	score := 1000 - int(share)
	return min(max(score, 1000+guaranteedOOMScore), bestEffortOOMScore-1)
}
