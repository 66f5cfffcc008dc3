package ingress

import (
	"context"
	"log/slog"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/controller/entry"
	"minik8s/internal/controller/loop"
	"minik8s/internal/gateway/frontends"
	"minik8s/internal/informer"
	"minik8s/internal/supervise"
)

// Controller is the controller.
type Controller struct {
	client    client.Interface
	ingresses *informer.Informer[*networkingv1.Ingress]
	classes   *informer.Informer[*networkingv1.IngressClass]
	nodes     *informer.Informer[*corev1.Node]
	loop      *loop.Loop
	classLoop *loop.Loop // has one key, once
}

// New makes the controller.
func New(c client.Interface, views *informer.Views, log *slog.Logger) *Controller {
	opts := informer.Options{Views: views, Log: log}
	i := &Controller{client: c,
		ingresses: informer.New[*networkingv1.Ingress](c, api.Ingresses, opts),
		classes:   informer.New[*networkingv1.IngressClass](c, api.IngressClasses, opts),
		nodes:     informer.New[*corev1.Node](c, api.Nodes, opts),
	}
	i.loop = loop.New("ingress", log, i.reconcile)
	i.classLoop = loop.New("ingressclass", log, i.makeClass)
	i.classLoop.Add(loop.Key{Name: frontends.ClassName})
	i.ingresses.OnChange(func(_, now *networkingv1.Ingress) {
		if now != nil {
			i.loop.Add(loop.Key{Namespace: now.Namespace, Name: now.Name})
		}
	})
	i.classes.OnChange(func(_, _ *networkingv1.IngressClass) { i.all() })
	i.nodes.OnChange(func(old, now *corev1.Node) {
		if !slices.Equal(entry.Of(old), entry.Of(now)) {
			i.all()
		}
	})
	return i
}

func (i *Controller) all() {
	for _, in := range i.ingresses.List() {
		i.loop.Add(loop.Key{Namespace: in.Namespace, Name: in.Name})
	}
}

// Run works until ctx ends.
func (i *Controller) Run(ctx context.Context, ready func()) error {
	return loop.Drive(ctx, ready, []supervise.Source{i.nodes, i.classes, i.ingresses}, i.classLoop.Workers(1), i.loop.Workers(2))
}

func (i *Controller) makeClass(ctx context.Context, key loop.Key) error {
	if _, ok := i.classes.Get("", key.Name); ok {
		return nil
	}
	_, err := i.client.Create(ctx, newClass(i.classes.List()), client.WriteOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (i *Controller) reconcile(ctx context.Context, key loop.Key) error {
	in, ok := i.ingresses.Get(key.Namespace, key.Name)
	if !ok || in.DeletionTimestamp != nil {
		return nil
	}
	want := wanted(in, i.classes.List(), i.nodes.List())
	if apiequality.Semantic.DeepEqual(want, in.Status.LoadBalancer.Ingress) {
		return nil
	}
	upd := in.DeepCopy()
	upd.Status.LoadBalancer.Ingress = want
	_, err := i.client.Update(ctx, upd, client.WriteOptions{Subresource: api.StatusSubresource})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
