package kubelet

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/client"
	"minik8s/internal/kubelet/plan"
)

// misfit is why a pod does not belong on this node; nil if it does. The scheduler asks the same before it
// binds a pod; nobody has asked for one that names its node itself.
//
// The Node as last seen may be older than the one by which the pod was bound, with a label that was set a
// moment ago. So before a pod is refused, which is for good, the Node is read anew.
func (n *nodeKeeper) misfit(ctx context.Context, pod *corev1.Pod) (*plan.Rejection, error) {
	select {
	case <-n.there:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if plan.NodeMismatch(pod, n.known(), n.host.os) == nil {
		return nil, nil
	}
	fresh, err := client.Get[*corev1.Node](ctx, n.k.client, n.key())
	if err != nil {
		return nil, err
	}
	return plan.NodeMismatch(pod, fresh, n.host.os), nil
}
