package node

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/client"
	"minik8s/internal/kubelet/plan"
)

// Admit is why a pod may not run on this node; nil if it may. The scheduler asks the same before it binds a pod;
// of a pod that names its node itself nobody has asked it yet. An error says that it is not known yet.
//
// The Node as last seen may be older than the one by which the pod was bound, and lack a label that was set a
// moment ago. So before a pod is rejected, which is final, the Node is read anew.
func (n *Keeper) Admit(ctx context.Context, pod *corev1.Pod) (*plan.Rejection, error) {
	select {
	case <-n.exists:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if plan.NodeMismatch(pod, n.known(), n.host.os) == nil {
		return nil, nil
	}
	fresh, err := client.Get[*corev1.Node](ctx, n.client, n.key())
	if err != nil {
		return nil, err
	}
	return plan.NodeMismatch(pod, fresh, n.host.os), nil
}
