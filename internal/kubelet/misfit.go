package kubelet

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/placement"
	"minik8s/internal/client"
)

// misfit is why a pod does not belong on this node; nil if it does. The scheduler asks the same before it
// binds a pod; nobody has asked for one that names its node itself.
//
// The Node as last seen may be older than the one by which the pod was bound, with a label that was set a
// moment ago. So before a pod is refused, which is for good, the Node is read anew.
func (n *nodeKeeper) misfit(ctx context.Context, pod *corev1.Pod) (*verdict, error) {
	select {
	case <-n.there:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if misfit(pod, n.known(), n.host.os) == nil {
		return nil, nil
	}
	fresh, err := client.Get[*corev1.Node](ctx, n.k.client, n.key())
	if err != nil {
		return nil, err
	}
	return misfit(pod, fresh, n.host.os), nil
}

// misfit is Kubernetes' rule, in its words and order: the operating system, which labels of Nodes cannot
// change; then node selector and required affinity; then the taints that would evict the pod. It does not
// look at NoSchedule taints: whoever names a node goes past the scheduler, and past what is for it.
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
