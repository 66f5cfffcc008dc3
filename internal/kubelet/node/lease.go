package node

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// leaseRenewer renews the node's Lease, its heartbeat.
type leaseRenewer struct {
	n *Manager
}

// renew renews the Lease; it creates the Lease if there is none. While no answer comes it
// tries again until the next heartbeat is due: the connection may have been to a master that has just died, and another
// one answers. The last failure is logged.
func (l *leaseRenewer) renew(parent context.Context, node *corev1.Node) {
	ctx, cancel := context.WithTimeout(parent, l.n.cfg.HeartbeatInterval)
	defer cancel()
	for pause := minRetry; ; pause = min(2*pause, maxRetry) {
		err := l.renewOnce(ctx, node)
		if err == nil && l.n.cfg.Heard != nil {
			l.n.cfg.Heard()
		}
		if err == nil || parent.Err() != nil {
			return
		}
		due, _ := ctx.Deadline()
		answer := errors.As(err, new(apierrors.APIStatus))
		if late := time.Until(due) < pause; answer || late {
			l.n.log.Warn("node lease not renewed", "error", err)
			if useless := apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err); (useless || !answer) && l.n.cfg.Unavailable != nil {
				l.n.cfg.Unavailable()
			}
			return
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
	}
}

func (l *leaseRenewer) renewOnce(ctx context.Context, node *corev1.Node) error {
	key := client.Key{Kind: api.Leases, Namespace: corev1.NamespaceNodeLease, Name: l.n.cfg.Name}
	now := metav1.NewMicroTime(l.n.cfg.Now())
	change := map[string]any{"spec": map[string]any{
		"renewTime": now, "holderIdentity": l.n.cfg.Name, "leaseDurationSeconds": l.seconds()}}
	data, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = l.n.client.Patch(ctx, key, client.Patch{Type: types.MergePatchType, Data: data}, client.WriteOptions{})
	if apierrors.IsNotFound(err) {
		_, err = l.n.client.Create(ctx, l.build(node, now), client.WriteOptions{})
	}
	return err
}

// seconds is how long the Lease holds: four heartbeats, as in Kubernetes.
func (l *leaseRenewer) seconds() int32 {
	return max(1, int32(4*l.n.cfg.HeartbeatInterval.Seconds()))
}

func (l *leaseRenewer) build(node *corev1.Node, now metav1.MicroTime) *coordinationv1.Lease {
	seconds := l.seconds()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: l.n.cfg.Name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &l.n.cfg.Name, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}
	if node != nil {
		lease.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
	}
	return lease
}
