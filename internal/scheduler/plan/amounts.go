package plan

import (
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/podspec"
)

// The resources with fixed numbers. Any other resource gets a number when it is first seen.
const (
	cpu = iota
	memory
	ephemeralStorage
)

// resources numbers the names of resources.
type resources struct {
	ids   map[corev1.ResourceName]int
	short []string // "Insufficient cpu", by number
}

func newResources() *resources {
	r := &resources{ids: map[corev1.ResourceName]int{}}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		r.id(name)
	}
	return r
}

func (r *resources) id(name corev1.ResourceName) int {
	id, ok := r.ids[name]
	if !ok {
		id = len(r.short)
		r.ids[name] = id
		r.short = append(r.short, "Insufficient "+string(name))
	}
	return id
}

// list returns the quantities, indexed by resource number.
func (r *resources) list(from corev1.ResourceList) []int64 {
	out := make([]int64, ephemeralStorage+1, len(r.short)+1)
	for name, q := range from {
		if name == corev1.ResourcePods {
			continue
		}
		id := r.id(name)
		for id >= len(out) {
			out = append(out, 0)
		}
		out[id] = podspec.Amount(name, q)
	}
	return out
}

func at(list []int64, id int) int64 {
	if id < len(list) {
		return list[id]
	}
	return 0
}

// want is a request above zero for one resource.
type want struct {
	id int
	n  int64
}

// What a container without requests counts for in scores (never in filters). Without it, all pods without requests
// would go to the node with the fewest requests.
const (
	idleCPU    = 100       // thousandths of a core
	idleMemory = 200 << 20 // bytes
)

// weight returns the cpu and memory that a pod counts for in scores.
func weight(spec *corev1.PodSpec, sum podspec.Amounts) [2]int64 {
	w := [2]int64{sum[corev1.ResourceCPU], sum[corev1.ResourceMemory]}
	for i := range spec.Containers {
		r := spec.Containers[i].Resources.Requests
		if _, ok := r[corev1.ResourceCPU]; !ok {
			w[cpu] += idleCPU
		}
		if _, ok := r[corev1.ResourceMemory]; !ok {
			w[memory] += idleMemory
		}
	}
	return w
}
