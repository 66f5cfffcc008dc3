package node

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/client"
	"minik8s/internal/kubelet/plan"
)

// Admit returns why a pod may not run on this node; nil if it may. The scheduler checks the same before it binds a
// pod, but a pod that names its node itself was not checked yet. An error means that it is not known yet: the API
// could not be reached.
//
// The Node as last seen may be older than the one for which the pod was bound, and lack a label that was just set. So
// before a pod is rejected, which is final, the Node is read again.
func (n *Manager) Admit(ctx context.Context, pod *corev1.Pod) (*plan.Rejection, error) {
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
