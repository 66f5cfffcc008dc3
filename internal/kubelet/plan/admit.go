package plan

import (
	"fmt"
	"iter"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/placement"
	"minik8s/internal/api/podspec"
)

// Rejection is the reason why a pod is not admitted to the node. The pod then fails.
type Rejection struct{ Reason, Message string }

// NodeShutdown is why a pod is not admitted while the machine shuts down, in Kubernetes' words
// (pkg/kubelet/nodeshutdown).
func NodeShutdown() *Rejection {
	return &Rejection{Reason: "NodeShutdown", Message: "Pod was rejected as the node is shutting down."}
}

// NodeMismatch returns why a pod may not run on a node; nil if it may. It is Kubernetes' rule, with its words and order
// (pkg/kubelet/lifecycle/predicate.go): the operating system, which Node labels cannot change; then node selector and
// required affinity; then taints that would evict the pod. NoSchedule taints are ignored: only the scheduler uses them,
// and a pod that names its node has bypassed the scheduler.
func NodeMismatch(pod *corev1.Pod, node *corev1.Node, os string) *Rejection {
	if want, ok := pod.Labels[corev1.LabelOSStable]; ok && want != os {
		return &Rejection{Reason: "PodOSSelectorNodeLabelDoesNotMatch", Message: "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"}
	}
	if pod.Spec.OS != nil && string(pod.Spec.OS.Name) != os {
		return &Rejection{Reason: "PodOSNotSupported", Message: "Failed to admit pod as the OS field doesn't match node OS"}
	}
	if !placement.Selects(&pod.Spec, node) {
		return &Rejection{Reason: "NodeAffinity", Message: "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"}
	}
	if placement.Evicts(pod.Spec.Tolerations, node.Spec.Taints) >= 0 {
		return &Rejection{Reason: "TaintToleration", Message: "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"}
	}
	return nil
}

// Claim is what a pod requests of its node's resources.
type Claim struct {
	Requests  podspec.Amounts
	HostPorts []placement.Port
}

// ClaimOf returns the pod's Claim.
func ClaimOf(pod *corev1.Pod) Claim {
	return Claim{Requests: podspec.Requests(&pod.Spec), HostPorts: placement.HostPorts(&pod.Spec)}
}

// Exceeds returns why a pod does not fit beside the claims of others; nil if it fits. Reasons and messages are those of
// Kubernetes (pkg/kubelet/lifecycle/predicate.go).
func Exceeds(c Claim, others iter.Seq[Claim], allocatable corev1.ResourceList) *Rejection {
	pods, used := int64(0), podspec.Amounts{}
	for o := range others {
		pods++
		for name, n := range o.Requests {
			used[name] += n
		}
	}
	if most := allocatable.Pods().Value(); pods >= most {
		return &Rejection{Reason: "OutOfpods", Message: fmt.Sprintf("Node didn't have enough resource: pods, requested: 1, used: %d, capacity: %d", pods, most)}
	}
	for o := range others {
		for _, p := range c.HostPorts {
			for _, q := range o.HostPorts {
				if p.Clashes(q) {
					return &Rejection{Reason: "NodePorts", Message: "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"}
				}
			}
		}
	}
	for name, want := range c.Requests {
		q, listed := allocatable[name]
		if want == 0 || !listed && extended(name) { // not in the Node's allocatable: only the scheduler checks it
			continue
		}
		if have := podspec.Amount(name, q); want > have-used[name] {
			return &Rejection{Reason: "OutOf" + string(name), Message: fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d",
				name, want, used[name], have)}
		}
	}
	return nil
}

// extended reports whether a resource is not one of Kubernetes' own: example.com/gpu.
func extended(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}
