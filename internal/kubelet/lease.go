package kubelet

import (
	"context"
	"encoding/json"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// leaseKeeper renews the Lease by which the control plane sees that the node lives.
type leaseKeeper struct{ k *Kubelet }

// renew moves the Lease's time; it makes the Lease if there is none. Failures are logged: the next
// heartbeat tries again.
func (l *leaseKeeper) renew(ctx context.Context, node *corev1.Node) {
	ctx, cancel := context.WithTimeout(ctx, l.k.cfg.HeartbeatInterval)
	defer cancel()
	key := client.Key{Kind: api.Leases, Namespace: corev1.NamespaceNodeLease, Name: l.k.cfg.NodeName}
	now := metav1.NewMicroTime(l.k.now())
	data, err := json.Marshal(map[string]any{"spec": map[string]any{
		"renewTime": now, "holderIdentity": l.k.cfg.NodeName, "leaseDurationSeconds": l.seconds()}})
	if err == nil {
		_, err = l.k.client.Patch(ctx, key, client.Patch{Type: types.MergePatchType, Data: data}, client.WriteOptions{})
	}
	if apierrors.IsNotFound(err) {
		_, err = l.k.client.Create(ctx, l.build(node, now), client.WriteOptions{})
	}
	if err != nil && ctx.Err() == nil {
		l.k.log.Warn("node lease not renewed", "error", err)
	}
}

// seconds is how long the Lease holds: four heartbeats, as in Kubernetes.
func (l *leaseKeeper) seconds() int32 {
	return max(1, int32(4*l.k.cfg.HeartbeatInterval.Seconds()))
}

func (l *leaseKeeper) build(node *corev1.Node, now metav1.MicroTime) *coordinationv1.Lease {
	seconds := l.seconds()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: l.k.cfg.NodeName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &l.k.cfg.NodeName, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}
	if node != nil {
		lease.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
	}
	return lease
}
