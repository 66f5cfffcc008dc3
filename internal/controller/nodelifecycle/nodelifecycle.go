package nodelifecycle

import (
	"context"
	"errors"
	"log/slog"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/controller/loop"
	"minik8s/internal/events"
	"minik8s/internal/informer"
	"minik8s/internal/supervise"
)

// Controller is the controller.
type Controller struct {
	client client.Interface
	record *events.Recorder
	nodes  *informer.Informer[*corev1.Node]
	leases *informer.Informer[*coordinationv1.Lease]
	loop   *loop.Loop
	times  Times
	self   string
	now    func() time.Time
	seen   heartbeats
	marked unreadySince
}

// New makes the controller; self is the Node of the machine that it runs on.
func New(c client.Interface, views *informer.Views, record *events.Recorder, self string, times Times, log *slog.Logger) *Controller {
	n := &Controller{client: c, record: record, self: self, times: times, now: clock.Now,
		nodes:  informer.New[*corev1.Node](c, api.Nodes, informer.Options{Views: views, Log: log}),
		leases: informer.New[*coordinationv1.Lease](c, api.Leases, informer.Options{Namespace: corev1.NamespaceNodeLease, Views: views, Log: log}),
	}
	n.seen.now = func() time.Time { return n.now() }
	n.loop = loop.New("nodelifecycle", log, n.reconcile)
	// Indexes, so that who sees a heartbeat in a Node also knows when it was seen: else a node that is back would be called silent.
	n.nodes.Index(n.seen.node)
	n.leases.Index(n.seen.lease)
	n.nodes.OnChange(func(old, now *corev1.Node) {
		if now == nil {
			n.marked.forget(old.Name)
			return
		}
		n.loop.Add(loop.Key{Name: now.Name})
	})
	// A renewed Lease only matters to a node that is tainted; the others wait for their timer.
	n.leases.OnChange(func(_, now *coordinationv1.Lease) {
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
	seen, now := n.seen.of(node.Name), n.now()
	p := n.times.decide(node, seen, now, now.Sub(seen) > n.times.Grace && n.disrupted(zoneOf(node), now))
	if p.lookAgain > 0 {
		n.loop.AddAfter(key, p.lookAgain)
	}
	if p.status != nil {
		if _, err := n.client.Update(ctx, p.status, client.WriteOptions{Subresource: "status"}); err != nil {
			return ignoreNotFound(err)
		}
		n.say(p.status)
	}
	if p.status != nil {
		n.lookAtLost() // one more may mean that its zone is disrupted
	}
	if p.remove {
		return n.remove(ctx, node)
	}
	return errors.Join(n.updateTaints(ctx, node, p), n.markPodsNotReady(ctx, node, p))
}

// say records an event about the rung that a silent node has come to.
func (n *Controller) say(node *corev1.Node) {
	reason, after := "NodeNotReady", n.times.Grace
	if condition(node, corev1.NodeReady).Status == corev1.ConditionUnknown {
		reason, after = "NodeUnknown", max(n.times.Grace, n.times.Unknown)
	}
	n.record.Event(node, corev1.EventTypeWarning, reason, "Node %s has not renewed its lease for %s", node.Name, after)
}

func (n *Controller) lookAtLost() {
	for _, node := range n.nodes.List() {
		if tainted(node) {
			n.loop.Add(loop.Key{Name: node.Name})
		}
	}
}

// disrupted counts the other machines that are silent. This machine's own Node says nothing about the network.
func (n *Controller) disrupted(in [2]string, now time.Time) bool {
	var everywhere, zone count
	for _, node := range n.nodes.List() {
		if condition(node, corev1.NodeReady) == nil {
			continue
		}
		own, silent := node.Name == n.self, now.Sub(n.seen.of(node.Name)) > n.times.Grace
		everywhere.add(own, silent)
		if zoneOf(node) == in {
			zone.add(own, silent)
		}
	}
	return disrupted(everywhere, zone)
}

// remove deletes a lost Node. Its pods are then deleted by package podgc, and if the machine comes back its kubelet
// registers again.
func (n *Controller) remove(ctx context.Context, node *corev1.Node) error {
	n.record.Event(node, corev1.EventTypeWarning, "RemovingNode", "Node %s has not renewed its lease for %s: it is removed", node.Name, n.times.Remove)
	_, err := n.client.Delete(ctx, client.KeyOf(node), &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &node.UID}})
	if apierrors.IsConflict(err) {
		return nil
	}
	return ignoreNotFound(err)
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
	upd.Spec.Taints = taintsFor(fresh, *p.taints, p.evict, n.now())
	_, err = n.client.Update(ctx, upd, client.WriteOptions{})
	return ignoreNotFound(err)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
