package kubelet

import (
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api/placement"
)

// admission keeps what the pods of this node ask for, so that no more are taken than fit. The
// scheduler sees to that; a pod that names its node, or one bound while another came, is caught here.
type admission struct {
	allocatable func() corev1.ResourceList

	mu   sync.Mutex
	pods map[types.UID]guest
}

// guest is a pod that holds room.
type guest struct {
	requests corev1.ResourceList
	ports    []corev1.ContainerPort // with a hostPort
}

func (a *admission) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pods = map[types.UID]guest{}
}

// enter gives room to a pod and says nil, or why there is none. A pod that is no newcomer, since it
// was started in an earlier life of the daemon, is always let in.
func (a *admission) enter(pod *corev1.Pod, newcomer bool) *verdict {
	if finished(pod.Status.Phase) {
		return nil
	}
	g := guest{requests: podRequests(pod), ports: hostPortsIn(pod)}
	a.mu.Lock()
	defer a.mu.Unlock()
	if newcomer {
		if v := a.refuse(g); v != nil {
			return v
		}
	}
	a.pods[pod.UID] = g
	return nil
}

// leave gives a pod's room back.
func (a *admission) leave(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.pods, uid)
}

func (a *admission) refuse(g guest) *verdict {
	allocatable := a.allocatable()
	if n := allocatable.Pods().Value(); int64(len(a.pods)) >= n {
		return &verdict{"OutOfpods", fmt.Sprintf("Node didn't have enough resource: pods, requested: 1, used: %d, capacity: %d", len(a.pods), n)}
	}
	used := corev1.ResourceList{}
	for _, o := range a.pods {
		add(used, o.requests)
		for _, p := range g.ports {
			for _, q := range o.ports {
				if placement.PortsClash(p, q) {
					return &verdict{"NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"}
				}
			}
		}
	}
	for name, want := range g.requests {
		if want.IsZero() {
			continue
		}
		have, listed := allocatable[name]
		if !listed && extended(name) { // not of the kubelet's keeping: the scheduler has seen to it
			continue
		}
		taken := used[name]
		left := have.DeepCopy()
		left.Sub(taken)
		if want.Cmp(left) > 0 {
			return &verdict{"OutOf" + string(name), fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d",
				name, amount(name, &want), amount(name, &taken), amount(name, &have))}
		}
	}
	return nil
}

// extended: a resource that is not Kubernetes' own, as example.com/gpu.
func extended(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

// amount is a quantity as Kubernetes counts it in messages: cpu in thousandths.
func amount(name corev1.ResourceName, q interface {
	Value() int64
	MilliValue() int64
}) int64 {
	if name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

// hostPortsIn lists the ports of the node that the pod's manifest claims.
func hostPortsIn(pod *corev1.Pod) []corev1.ContainerPort {
	var out []corev1.ContainerPort
	for _, c := range allContainers(pod) {
		if initNamed(pod, c.Name) != nil && !isSidecar(c) {
			continue
		}
		for _, p := range c.Ports {
			if pod.Spec.HostNetwork && p.HostPort == 0 {
				p.HostPort = p.ContainerPort
			}
			if p.HostPort > 0 {
				out = append(out, p)
			}
		}
	}
	return out
}
