package namespace

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/controller/loop"
	"minik8s/internal/informer"
	"minik8s/internal/supervise"
)

// workers is how many namespaces are emptied concurrently.
const workers = 5

// Controller is the namespace controller.
type Controller struct {
	client     client.Interface
	table      *api.Table
	namespaces *informer.Informer[*corev1.Namespace]
	loop       *loop.Loop
	log        *slog.Logger
}

// New makes the controller for the kinds of a table, and for those that are added later.
func New(c client.Interface, views *informer.Views, table *api.Table, log *slog.Logger) *Controller {
	n := &Controller{client: c, table: table, log: log, namespaces: informer.New[*corev1.Namespace](c, api.Namespaces, informer.Options{Views: views, Log: log})}
	n.loop = loop.New("namespace", log, n.reconcile)
	n.namespaces.OnChange(func(old, now *corev1.Namespace) {
		if deletionBegins(old, now) {
			n.loop.Add(loop.Key{Name: now.Name})
		}
	})
	return n
}

// deletionBegins reports whether this change begins a deletion. Later changes, most of them our own conditions, do
// not start a round: the loop and the watches queue a namespace again until it is deleted.
func deletionBegins(old, now *corev1.Namespace) bool {
	return now != nil && now.DeletionTimestamp != nil && (old == nil || old.DeletionTimestamp == nil)
}

// Run works until ctx ends.
func (n *Controller) Run(ctx context.Context, ready func()) error {
	return loop.Drive(ctx, ready, []supervise.Source{n.namespaces}, n.loop.Workers(workers))
}

// reconcile is one round with one namespace.
func (n *Controller) reconcile(ctx context.Context, key loop.Key) error {
	// The newest version, because the two writes below are guarded by it.
	ns, err := client.Get[*corev1.Namespace](ctx, n.client, client.Key{Kind: api.Namespaces, Name: key.Name})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || ns.DeletionTimestamp == nil || !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes) {
		return err
	}
	left, err := n.empty(ctx, ns.Name)
	if err == nil && len(left) == 0 {
		return n.finalize(ctx, ns)
	}
	if rerr := n.report(ctx, ns, conditions(left, err)); rerr != nil || err != nil {
		return errors.Join(err, rerr)
	}
	if slices.ContainsFunc(left, func(r remains) bool { return r.notDeleted > 0 }) {
		n.loop.AddAfter(key, retryPause) // created or changed during the round: no event would follow
		return nil
	}
	n.requeueWhenEmpty(ctx, key, left)
	return nil
}

// finalize removes the namespace's finalizer, so that it is deleted.
func (n *Controller) finalize(ctx context.Context, ns *corev1.Namespace) error {
	done := ns.DeepCopy()
	done.Spec.Finalizers = slices.DeleteFunc(done.Spec.Finalizers, func(f corev1.FinalizerName) bool { return f == corev1.FinalizerKubernetes })
	_, err := n.client.Update(ctx, done, client.WriteOptions{Subresource: "finalize"})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// report writes conditions that have changed.
func (n *Controller) report(ctx context.Context, ns *corev1.Namespace, now []corev1.NamespaceCondition) error {
	upd := ns.DeepCopy()
	if !merge(&upd.Status, now) {
		return nil
	}
	_, err := n.client.Update(ctx, upd, client.WriteOptions{Subresource: "status"})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
