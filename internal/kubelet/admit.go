package kubelet

import (
	"fmt"
	"iter"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/placement"
	"minik8s/internal/api/podspec"
)

// verdict is why a pod is refused as a whole, which makes it fail.
type verdict struct{ reason, message string }

// misfit is why a pod does not belong on a node; nil if it does. It is Kubernetes' rule, in its words and
// order (pkg/kubelet/lifecycle/predicate.go): the operating system, which labels of Nodes cannot change; then
// node selector and required affinity; then the taints that would evict the pod. NoSchedule taints are not
// looked at: they are for the scheduler, and a pod that names its node has passed it by.
func misfit(pod *corev1.Pod, node *corev1.Node, os string) *verdict {
	if want, ok := pod.Labels[corev1.LabelOSStable]; ok && want != os {
		return &verdict{"PodOSSelectorNodeLabelDoesNotMatch", "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"}
	}
	if pod.Spec.OS != nil && string(pod.Spec.OS.Name) != os {
		return &verdict{"PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"}
	}
	if !placement.Selects(&pod.Spec, node) {
		return &verdict{"NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"}
	}
	if placement.Evicts(pod.Spec.Tolerations, node.Spec.Taints) >= 0 {
		return &verdict{"TaintToleration", "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"}
	}
	return nil
}

// claim is what one pod takes of its node.
type claim struct {
	requests podspec.Amounts
	ports    []corev1.ContainerPort // with a hostPort
}

func claimOf(pod *corev1.Pod) claim {
	return claim{requests: podspec.Requests(&pod.Spec), ports: hostPortsIn(pod)}
}

// tooMuch is why a pod does not fit beside the claims of others; nil if it does. Reasons and messages are
// those of Kubernetes (pkg/kubelet/lifecycle/predicate.go).
func tooMuch(c claim, others iter.Seq[claim], allocatable corev1.ResourceList) *verdict {
	pods, used := int64(0), podspec.Amounts{}
	for o := range others {
		pods++
		for name, n := range o.requests {
			used[name] += n
		}
	}
	if most := allocatable.Pods().Value(); pods >= most {
		return &verdict{"OutOfpods", fmt.Sprintf("Node didn't have enough resource: pods, requested: 1, used: %d, capacity: %d", pods, most)}
	}
	for o := range others {
		for _, p := range c.ports {
			for _, q := range o.ports {
				if placement.PortsClash(p, q) {
					return &verdict{"NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"}
				}
			}
		}
	}
	for name, want := range c.requests {
		q, listed := allocatable[name]
		if want == 0 || !listed && extended(name) { // the kubelet does not keep it: the scheduler has seen to it
			continue
		}
		if have := podspec.Amount(name, q); want > have-used[name] {
			return &verdict{"OutOf" + string(name), fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d",
				name, want, used[name], have)}
		}
	}
	return nil
}

// extended: a resource that is not Kubernetes' own, as example.com/gpu.
func extended(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
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
