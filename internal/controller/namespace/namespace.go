// Package namespace empties namespaces that are being deleted, and lets them go when they are empty.
//
// It reads Namespaces and every namespaced kind; it deletes what is in a terminating namespace and
// writes namespaces/finalize. roles runs it beside the master. It keeps nothing: after a kill -9 the
// first list finds the namespaces that are still terminating.
package namespace

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/controller/loop"
	"minik8s/internal/informer"
)

// Controller is the namespace controller.
type Controller struct {
	client     client.Interface
	namespaces *informer.Informer[*corev1.Namespace]
	loop       *loop.Loop
}

// New makes the controller.
func New(c client.Interface, log *slog.Logger) *Controller {
	n := &Controller{client: c, namespaces: informer.New[*corev1.Namespace](c, api.Namespaces, informer.Options{Log: log})}
	n.loop = loop.New("namespace", log, n.reconcile)
	n.namespaces.OnChange(func(_, now *corev1.Namespace) {
		if now != nil && now.DeletionTimestamp != nil {
			n.loop.Add(loop.Key{Name: now.Name})
		}
	})
	return n
}

// Run works until ctx ends.
func (n *Controller) Run(ctx context.Context, ready func()) error {
	go n.loop.Run(ctx, 2)
	return n.namespaces.Run(ctx, ready)
}

// lookAgain is when to look whether what was deleted has gone: pods need their grace period.
const lookAgain = 250 * time.Millisecond

func (n *Controller) reconcile(ctx context.Context, key loop.Key) error {
	ns, ok := n.namespaces.Get("", key.Name)
	if !ok || ns.DeletionTimestamp == nil {
		return nil
	}
	left, err := n.empty(ctx, ns.Name)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		n.loop.AddAfter(key, lookAgain)
		return n.report(ctx, ns, left)
	}
	if !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes) {
		return nil
	}
	done := ns.DeepCopy()
	done.Spec.Finalizers = slices.DeleteFunc(done.Spec.Finalizers, func(f corev1.FinalizerName) bool { return f == corev1.FinalizerKubernetes })
	_, err = n.client.Update(ctx, done, client.WriteOptions{Subresource: "finalize"})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// empty deletes what is in the namespace and says what is still there.
func (n *Controller) empty(ctx context.Context, ns string) (left []string, err error) {
	for _, kind := range api.Kinds {
		if !kind.Namespaced {
			continue
		}
		list, err := n.client.List(ctx, kind, client.ListOptions{Namespace: ns})
		if err != nil {
			return nil, err
		}
		for _, obj := range list.Items {
			if obj.GetDeletionTimestamp() == nil {
				_, err := n.client.Delete(ctx, client.Key{Kind: kind, Namespace: ns, Name: obj.GetName()},
					&metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(obj.GetUID()))})
				if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
					return nil, err
				}
			}
		}
		if list, err = n.client.List(ctx, kind, client.ListOptions{Namespace: ns}); err != nil {
			return nil, err
		}
		if len(list.Items) > 0 {
			left = append(left, fmt.Sprintf("%s has %d instances", kind, len(list.Items)))
		}
	}
	return left, nil
}

// report says on the namespace what holds it.
func (n *Controller) report(ctx context.Context, ns *corev1.Namespace, left []string) error {
	c := corev1.NamespaceCondition{Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionTrue, Reason: "SomeResourcesRemain",
		Message: "Some resources are remaining: " + strings.Join(left, ", "), LastTransitionTime: metav1.Now()}
	i := slices.IndexFunc(ns.Status.Conditions, func(x corev1.NamespaceCondition) bool { return x.Type == c.Type })
	if i >= 0 && ns.Status.Conditions[i].Message == c.Message {
		return nil
	}
	upd := ns.DeepCopy()
	if i >= 0 {
		c.LastTransitionTime = upd.Status.Conditions[i].LastTransitionTime
		upd.Status.Conditions[i] = c
	} else {
		upd.Status.Conditions = append(upd.Status.Conditions, c)
	}
	_, err := n.client.Update(ctx, upd, client.WriteOptions{Subresource: "status"})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
