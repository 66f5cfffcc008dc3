package tainteviction

import (
	"context"
	"log/slog"
	"sync"
	"time"

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
	pods   *informer.Informer[*corev1.Pod]
	nodes  *informer.Informer[*corev1.Node]
	loop   *loop.Loop
	now    func() time.Time

	mu   sync.Mutex
	seen map[taintOn]time.Time // when a taint without a time was first seen
}

// taintOn is a taint of a node.
type taintOn struct{ node, key, value string }

// New makes the controller.
func New(c client.Interface, views *informer.Views, record *events.Recorder, log *slog.Logger) *Controller {
	t := &Controller{client: c, record: record, now: clock.Now, seen: map[taintOn]time.Time{},
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
		if t.note(old, now) {
			for _, p := range t.pods.List() {
				if p.Spec.NodeName == now.Name {
					t.loop.Add(loop.Key{Namespace: p.Namespace, Name: p.Name})
				}
			}
		}
	})
	return t
}

// note records when a node's NoExecute taints were first seen, and forgets removed ones. It reports whether the
// taints changed.
func (t *Controller) note(old, now *corev1.Node) (changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	had := map[taintOn]bool{}
	for _, on := range taintsOn(old) {
		had[on] = true
	}
	for _, on := range taintsOn(now) {
		if _, known := t.seen[on]; !known {
			t.seen[on] = t.now()
		}
		changed = changed || !had[on]
		delete(had, on)
	}
	for on := range had {
		delete(t.seen, on)
	}
	return changed || len(had) > 0 && now != nil
}

func taintsOn(n *corev1.Node) (out []taintOn) {
	if n == nil {
		return nil
	}
	for _, taint := range n.Spec.Taints {
		if taint.Effect == corev1.TaintEffectNoExecute {
			out = append(out, taintOn{n.Name, taint.Key, taint.Value})
		}
	}
	return out
}

// since is when a taint of a node was added, or else first seen.
func (t *Controller) since(node string) func(*corev1.Taint) time.Time {
	return func(taint *corev1.Taint) time.Time {
		if taint.TimeAdded != nil {
			return taint.TimeAdded.Time
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if at, ok := t.seen[taintOn{node, taint.Key, taint.Value}]; ok {
			return at
		}
		return t.now()
	}
}

func noExecute(n *corev1.Node) bool {
	for _, t := range n.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoExecute {
			return true
		}
	}
	return false
}

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
	v := decide(pod, node, t.since(node.Name), t.now())
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
