package loadbalancer

import (
	"context"
	"log/slog"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/controller/entry"
	"minik8s/internal/controller/loop"
	"minik8s/internal/informer"
	"minik8s/internal/supervise"
)

// Controller is the controller.
type Controller struct {
	client   client.Interface
	services *informer.Informer[*corev1.Service]
	nodes    *informer.Informer[*corev1.Node]
	loop     *loop.Loop
}

// New makes the controller.
func New(c client.Interface, views *informer.Views, log *slog.Logger) *Controller {
	opts := informer.Options{Views: views, Log: log}
	b := &Controller{client: c,
		services: informer.New[*corev1.Service](c, api.Services, opts),
		nodes:    informer.New[*corev1.Node](c, api.Nodes, opts),
	}
	b.loop = loop.New("loadbalancer", log, b.reconcile)
	b.services.OnChange(func(_, now *corev1.Service) {
		if now != nil && balanced(now) {
			b.loop.Add(loop.Key{Namespace: now.Namespace, Name: now.Name})
		}
	})
	b.nodes.OnChange(func(old, now *corev1.Node) {
		if slices.Equal(entry.Of(old), entry.Of(now)) {
			return
		}
		for _, svc := range b.services.List() {
			if balanced(svc) {
				b.loop.Add(loop.Key{Namespace: svc.Namespace, Name: svc.Name})
			}
		}
	})
	return b
}

// Run works until ctx ends.
func (b *Controller) Run(ctx context.Context, ready func()) error {
	return loop.Drive(ctx, ready, []supervise.Source{b.nodes, b.services}, b.loop.Workers(2))
}

// balanced reports whether a Service is ours.
func balanced(svc *corev1.Service) bool {
	return svc.Spec.Type == corev1.ServiceTypeLoadBalancer && svc.Spec.LoadBalancerClass == nil
}

// decide returns the addresses that a Service is to have, in order.
func decide(nodes []*corev1.Node) []corev1.LoadBalancerIngress {
	var out []corev1.LoadBalancerIngress
	for _, a := range entry.All(nodes) {
		out = append(out, corev1.LoadBalancerIngress{IP: a.String(), IPMode: new(corev1.LoadBalancerIPModeVIP)})
	}
	return out
}

func (b *Controller) reconcile(ctx context.Context, key loop.Key) error {
	svc, ok := b.services.Get(key.Namespace, key.Name)
	if !ok || !balanced(svc) || svc.DeletionTimestamp != nil {
		return nil
	}
	ingress := decide(b.nodes.List())
	if len(ingress) == 0 || apiequality.Semantic.DeepEqual(ingress, svc.Status.LoadBalancer.Ingress) {
		return nil
	}
	upd := svc.DeepCopy()
	upd.Status.LoadBalancer.Ingress = ingress
	_, err := b.client.Update(ctx, upd, client.WriteOptions{Subresource: api.StatusSubresource})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
