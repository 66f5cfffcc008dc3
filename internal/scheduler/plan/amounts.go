package plan

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The resources that have fixed numbers; others get theirs when they are first seen.
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

// most is the largest amount that is told from others. Sums of all that can meet in one pod or on one
// node stay far below where numbers overflow.
const most = 1 << 50

// units is a quantity as a number: cpu in thousandths of a core, all else in units.
func units(name corev1.ResourceName, q resource.Quantity) int64 {
	if q.CmpInt64(most) >= 0 { // before it is multiplied
		return most
	}
	if name == corev1.ResourceCPU {
		return min(q.MilliValue(), most)
	}
	return q.Value()
}

// list is quantities by the number of their resource.
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
		out[id] = units(name, q)
	}
	return out
}

func at(list []int64, id int) int64 {
	if id < len(list) {
		return list[id]
	}
	return 0
}

// want is a request above zero.
type want struct {
	id int
	n  int64
}

// amounts are quantities by name, while a pod's requests are summed up.
type amounts map[corev1.ResourceName]int64

func (a amounts) add(list corev1.ResourceList) {
	for name, q := range list {
		a[name] += units(name, q)
	}
}

func sidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// requests is what a pod needs at its widest: the sum of its containers and sidecars, or the largest
// init container beside the sidecars started before it; and its overhead. Requests of the pod as a whole
// go before those of its containers.
func requests(spec *corev1.PodSpec) amounts {
	sum := amounts{}
	for i := range spec.Containers {
		sum.add(spec.Containers[i].Resources.Requests)
	}
	if len(spec.InitContainers) > 0 {
		widest, sidecars := amounts{}, amounts{}
		for i := range spec.InitContainers {
			c := &spec.InitContainers[i]
			if sidecar(c) {
				sidecars.add(c.Resources.Requests)
				sum.add(c.Resources.Requests)
				continue
			}
			for name, q := range c.Resources.Requests {
				widest[name] = max(widest[name], units(name, q)+sidecars[name])
			}
		}
		for name, n := range widest {
			sum[name] = max(sum[name], n)
		}
	}
	if spec.Resources != nil {
		for name, q := range spec.Resources.Requests {
			sum[name] = units(name, q)
		}
	}
	sum.add(spec.Overhead)
	return sum
}

// What a container that asks for nothing counts for in scores, never in filters: without it, pods that
// ask for nothing would all go to the node where nobody has asked for anything.
const (
	idleCPU    = 100       // thousandths of a core
	idleMemory = 200 << 20 // bytes
)

// weight is what a pod counts for in scores: cpu and memory.
func weight(spec *corev1.PodSpec, sum amounts) [2]int64 {
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

// hostPort is a port of the node that a pod takes.
type hostPort struct {
	ip, protocol string // ip "": every address
	port         int32
}

func (a hostPort) clashes(b hostPort) bool {
	return a.port == b.port && a.protocol == b.protocol && (a.ip == b.ip || a.ip == "" || b.ip == "")
}

func hostPorts(spec *corev1.PodSpec) []hostPort {
	var out []hostPort
	add := func(c *corev1.Container) {
		for _, p := range c.Ports {
			if p.HostPort <= 0 {
				continue
			}
			hp := hostPort{p.HostIP, string(p.Protocol), p.HostPort}
			if hp.ip == "0.0.0.0" || hp.ip == "::" {
				hp.ip = ""
			}
			if hp.protocol == "" {
				hp.protocol = string(corev1.ProtocolTCP)
			}
			out = append(out, hp)
		}
	}
	for i := range spec.Containers {
		add(&spec.Containers[i])
	}
	for i := range spec.InitContainers {
		if sidecar(&spec.InitContainers[i]) {
			add(&spec.InitContainers[i])
		}
	}
	return out
}
