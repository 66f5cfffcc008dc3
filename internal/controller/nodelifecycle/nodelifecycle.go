package nodelifecycle

import (
	"context"
	"errors"
	"log/slog"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/controller/loop"
	"minik8s/internal/events"
	"minik8s/internal/informer"
	"minik8s/internal/supervise"
)

// Grace is how long a node may be silent: the earlier default of Kubernetes' node-monitor-grace-period, and that of
// the seed systems.
const Grace = 40 * time.Second

// Controller is the controller.
type Controller struct {
	client client.Interface
	record *events.Recorder
	nodes  *informer.Informer[*corev1.Node]
	leases *informer.Informer[*coordinationv1.Lease]
	loop   *loop.Loop
	now    func() time.Time
	seen   heartbeats
	marked unreadySince
}

// New makes the controller.
func New(c client.Interface, views *informer.Views, record *events.Recorder, log *slog.Logger) *Controller {
	n := &Controller{client: c, record: record, now: time.Now,
		nodes:  informer.New[*corev1.Node](c, api.Nodes, informer.Options{Views: views, Log: log}),
		leases: informer.New[*coordinationv1.Lease](c, api.Leases, informer.Options{Namespace: corev1.NamespaceNodeLease, Views: views, Log: log}),
	}
	n.seen.now = func() time.Time { return n.now() }
	n.loop = loop.New("nodelifecycle", log, n.reconcile)
	n.nodes.OnChange(func(old, now *corev1.Node) {
		n.seen.node(old, now)
		if now == nil {
			n.marked.forget(old.Name)
			return
		}
		n.loop.Add(loop.Key{Name: now.Name})
	})
	// A renewed Lease only matters to a node that is tainted; the others wait for their timer.
	n.leases.OnChange(func(old, now *coordinationv1.Lease) {
		n.seen.lease(old, now)
		if now == nil {
			return
		}
		if node, ok := n.nodes.Get("", now.Name); ok && tainted(node) {
			n.loop.Add(loop.Key{Name: now.Name})
		}
	})
	return n
}

// Run works until ctx ends.
func (n *Controller) Run(ctx context.Context, ready func()) error {
	n.seen.begin()
	return loop.Drive(ctx, ready, []supervise.Source{n.leases, n.nodes}, n.loop.Workers(1))
}

func (n *Controller) reconcile(ctx context.Context, key loop.Key) error {
	node, ok := n.nodes.Get("", key.Name)
	if !ok {
		return nil
	}
	p := decide(node, n.seen.of(node.Name), n.now())
	if p.lookAgain > 0 {
		n.loop.AddAfter(key, p.lookAgain)
	}
	if p.status != nil {
		if _, err := n.client.Update(ctx, p.status, client.WriteOptions{Subresource: "status"}); err != nil {
			return ignoreNotFound(err)
		}
		n.record.Event(node, corev1.EventTypeWarning, "NodeNotReady", "Node %s has not renewed its lease for %s", node.Name, Grace)
	}
	return errors.Join(n.updateTaints(ctx, node, p), n.markPodsNotReady(ctx, node, p))
}

func (n *Controller) updateTaints(ctx context.Context, node *corev1.Node, p plan) error {
	if p.taints == nil {
		return nil
	}
	fresh, err := client.Get[*corev1.Node](ctx, n.client, client.KeyOf(node))
	if err != nil {
		return ignoreNotFound(err)
	}
	upd := fresh.DeepCopy() // keeps taints that others have added since
	upd.Spec.Taints = taintsFor(fresh, *p.taints, n.now())
	_, err = n.client.Update(ctx, upd, client.WriteOptions{})
	return ignoreNotFound(err)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
