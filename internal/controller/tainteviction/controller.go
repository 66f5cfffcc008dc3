package tainteviction

import (
	"context"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/controller/loop"
	"minik8s/internal/controller/sightings"
	"minik8s/internal/events"
	"minik8s/internal/informer"
	"minik8s/internal/supervise"
)

// Controller is the controller.
type Controller struct {
	client client.Interface
	record *events.Recorder
	pods   *informer.Informer[*corev1.Pod]
	nodes  *informer.Informer[*corev1.Node]
	loop   *loop.Loop
	now    func() time.Time
	seen   *sightings.Sightings
}

// New makes the controller.
func New(c client.Interface, views *informer.Views, record *events.Recorder, seen *sightings.Sightings, log *slog.Logger) *Controller {
	t := &Controller{client: c, record: record, now: clock.Now, seen: seen,
		pods:  informer.New[*corev1.Pod](c, api.Pods, informer.Options{Views: views, Log: log}),
		nodes: informer.New[*corev1.Node](c, api.Nodes, informer.Options{Views: views, Log: log}),
	}
	t.loop = loop.New("tainteviction", log, t.reconcile)
	t.pods.OnChange(func(old, now *corev1.Pod) {
		// A pod matters when it is bound to a node, or its tolerations change.
		if now != nil && now.Spec.NodeName != "" && (old == nil || old.Spec.NodeName == "" || old.Generation != now.Generation) {
			if node, ok := t.nodes.Get("", now.Spec.NodeName); !ok || noExecute(node) {
				t.loop.Add(loop.Key{Namespace: now.Namespace, Name: now.Name})
			}
		}
	})
	t.nodes.OnChange(func(old, now *corev1.Node) {
		if now != nil && changed(old, now) {
			for _, p := range t.pods.List() {
				if p.Spec.NodeName == now.Name {
					t.loop.Add(loop.Key{Namespace: p.Namespace, Name: p.Name})
				}
			}
		}
	})
	return t
}

// changed reports whether a node has other NoExecute taints than before.
func changed(old, now *corev1.Node) bool {
	was, is := taintsOn(old), taintsOn(now)
	return !equality.Semantic.DeepEqual(was, is)
}

func taintsOn(n *corev1.Node) (out []corev1.Taint) {
	if n == nil {
		return nil
	}
	for _, taint := range n.Spec.Taints {
		if taint.Effect == corev1.TaintEffectNoExecute {
			out = append(out, taint)
		}
	}
	return out
}

func noExecute(n *corev1.Node) bool { return len(taintsOn(n)) > 0 }

// Run works until ctx ends.
func (t *Controller) Run(ctx context.Context, ready func()) error {
	return loop.Drive(ctx, ready, []supervise.Source{t.nodes, t.pods}, t.loop.Workers(4))
}

func (t *Controller) reconcile(ctx context.Context, key loop.Key) error {
	pod, ok := t.pods.Get(key.Namespace, key.Name)
	if !ok {
		return nil
	}
	node, ok := t.nodes.Get("", pod.Spec.NodeName)
	if !ok {
		return nil // podgc deletes the pods of missing nodes
	}
	v := decide(pod, node, func(taint *corev1.Taint) time.Time { return t.seen.Taint(node, taint) }, t.now())
	if v.after > 0 {
		t.loop.AddAfter(key, v.after)
	}
	if !v.evict {
		return nil
	}
	t.record.Event(pod, corev1.EventTypeNormal, "TaintManagerEviction", "Marking for deletion Pod %s/%s", pod.Namespace, pod.Name)
	if err := t.condition(ctx, pod); err != nil {
		return err
	}
	_, err := t.client.Delete(ctx, client.KeyOf(pod), &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// condition writes the condition DisruptionTarget, which says why the pod is deleted.
func (t *Controller) condition(ctx context.Context, pod *corev1.Pod) error {
	fresh, err := client.Get[*corev1.Pod](ctx, t.client, client.KeyOf(pod))
	if err != nil || fresh.UID != pod.UID {
		return ignoreGone(err)
	}
	for _, c := range fresh.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return nil
		}
	}
	upd := fresh.DeepCopy()
	upd.Status.Conditions = append(upd.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
		Reason: "DeletionByTaintManager", Message: "Taint manager: deleting due to NoExecute taint",
		LastTransitionTime: metav1.NewTime(t.now()), ObservedGeneration: fresh.Generation})
	_, err = t.client.Update(ctx, upd, client.WriteOptions{Subresource: "status"})
	return ignoreGone(err)
}

func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
