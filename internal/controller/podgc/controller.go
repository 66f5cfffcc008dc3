package podgc

import (
	"context"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/controller/loop"
	"minik8s/internal/controller/pods"
	"minik8s/internal/informer"
	"minik8s/internal/supervise"
)

// Threshold is how many finished pods may stay; Kubernetes' default.
const Threshold = 12500

const (
	// batch is the least time between two sweeps.
	batch = 20 * time.Second
	// quarantine is how long a Node must be missing before its pods are deleted. A kubelet that runs registers again when
	// its Node is deleted, and this is more than it takes to start a daemon again or to find the way back to a master.
	// It is half of Kubernetes': a Node that was removed because it was lost has had its time.
	quarantine = 20 * time.Second
)

// sweepKey is the loop's only key.
var sweepKey = loop.Key{Name: "sweep"}

// Controller is the controller.
type Controller struct {
	client    client.Interface
	threshold int
	pods      *informer.Informer[*corev1.Pod]
	nodes     *informer.Informer[*corev1.Node]
	loop      *loop.Loop
	now       func() time.Time
	missing   map[string]time.Time // used by the one worker only
}

// New makes the controller; threshold is how many finished pods may stay.
func New(c client.Interface, views *informer.Views, threshold int, log *slog.Logger) *Controller {
	g := &Controller{client: c, threshold: threshold, now: clock.Now, missing: map[string]time.Time{},
		pods:  informer.New[*corev1.Pod](c, api.Pods, informer.Options{Views: views, Log: log}),
		nodes: informer.New[*corev1.Node](c, api.Nodes, informer.Options{Views: views, Log: log}),
	}
	g.loop = loop.New("podgc", log, g.sweep)
	g.nodes.OnChange(func(_, now *corev1.Node) {
		if now == nil {
			g.loop.Add(sweepKey)
		}
	})
	g.pods.OnChange(func(old, now *corev1.Pod) {
		if now == nil || old != nil && pods.Finished(old) == pods.Finished(now) && old.Spec.NodeName == now.Spec.NodeName {
			return
		}
		_, known := g.nodes.Get("", now.Spec.NodeName)
		if pods.Finished(now) || now.Spec.NodeName != "" && !known {
			g.loop.AddAfter(sweepKey, batch)
		}
	})
	return g
}

// Run works until ctx ends.
func (g *Controller) Run(ctx context.Context, ready func()) error {
	g.loop.Add(sweepKey)
	return loop.Drive(ctx, ready, []supervise.Source{g.nodes, g.pods}, g.loop.Workers(1))
}

func (g *Controller) sweep(ctx context.Context, _ loop.Key) error {
	list := g.pods.List()
	for _, p := range surplus(list, g.threshold) {
		if err := g.remove(ctx, p); err != nil {
			return err
		}
	}
	without := stranded(list, func(node string) bool { _, ok := g.nodes.Get("", node); return ok })
	for node := range g.missing {
		if without[node] == nil {
			delete(g.missing, node)
		}
	}
	for node, list := range without {
		since, seen := g.missing[node]
		if !seen {
			since = g.now()
			g.missing[node] = since
		}
		if left := since.Add(quarantine).Sub(g.now()); left > 0 {
			g.loop.AddAfter(sweepKey, left)
			continue
		}
		if err := g.deletePodsOf(ctx, node, list); err != nil {
			return err
		}
	}
	return nil
}

// deletePodsOf deletes the pods of a node, if the API confirms that there is no such Node.
func (g *Controller) deletePodsOf(ctx context.Context, node string, list []*corev1.Pod) error {
	if _, err := g.client.Get(ctx, client.Key{Kind: api.Nodes, Name: node}); !apierrors.IsNotFound(err) {
		return err
	}
	for _, p := range list {
		if !pods.Finished(p) {
			if _, err := g.client.Update(ctx, markFailed(p, g.now()), client.WriteOptions{Subresource: "status"}); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
		if err := g.remove(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func (g *Controller) remove(ctx context.Context, p *corev1.Pod) error {
	_, err := g.client.Delete(ctx, client.KeyOf(p), &metav1.DeleteOptions{GracePeriodSeconds: new(int64),
		Preconditions: metav1.NewUIDPreconditions(string(p.UID))})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
