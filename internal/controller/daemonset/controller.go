package daemonset

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/placement"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/controller/expect"
	"minik8s/internal/controller/loop"
	"minik8s/internal/controller/owner"
	"minik8s/internal/controller/pods"
	"minik8s/internal/controller/sightings"
	"minik8s/internal/events"
	"minik8s/internal/informer"
	"minik8s/internal/supervise"
)

const workers = 2

// The back-off of pods that fail on their node: from a second to a quarter of an hour.
const (
	minBackoff = time.Second
	maxBackoff = 15 * time.Minute
)

// Controller is the controller.
type Controller struct {
	client      client.Interface
	record      *events.Recorder
	control     pods.Control
	sets        *informer.Informer[*appsv1.DaemonSet]
	nodes       *informer.Informer[*corev1.Node]
	pods        *informer.Informer[*corev1.Pod]
	podsOf      *owner.Index[*corev1.Pod]
	revisions   *informer.Informer[*appsv1.ControllerRevision]
	revisionsOf *owner.Index[*appsv1.ControllerRevision]
	expect      *expect.Tracker[*corev1.Pod]
	loop        *loop.Loop
	now         func() time.Time
	seen        *sightings.Sightings

	mu       sync.Mutex
	failures map[string]backoff // by the set's UID and the node
}

type backoff struct {
	wait time.Duration
	at   time.Time
}

// New makes the controller. seen says since when pods are ready.
func New(c client.Interface, views *informer.Views, record *events.Recorder, seen *sightings.Sightings, log *slog.Logger) *Controller {
	d := &Controller{client: c, seen: seen, record: record, control: pods.Control{Client: c, Record: record}, now: clock.Now,
		failures:  map[string]backoff{},
		sets:      informer.New[*appsv1.DaemonSet](c, api.DaemonSets, informer.Options{Views: views, Log: log}),
		nodes:     informer.New[*corev1.Node](c, api.Nodes, informer.Options{Views: views, Log: log}),
		pods:      informer.New[*corev1.Pod](c, api.Pods, informer.Options{Views: views, Log: log}),
		revisions: informer.New[*appsv1.ControllerRevision](c, api.ControllerRevisions, informer.Options{Views: views, Log: log}),
	}
	d.podsOf, d.revisionsOf = owner.NewIndex(d.pods), owner.NewIndex(d.revisions)
	d.loop = loop.New("daemonset", log, d.reconcile)
	d.expect = expect.New(c, d.pods, d.loop.Add)
	d.sets.OnChange(func(old, now *appsv1.DaemonSet) {
		if now == nil {
			now = old
		}
		d.loop.Add(loop.Key{Namespace: now.Namespace, Name: now.Name})
	})
	d.nodes.OnChange(d.nodeChanged)
	d.revisions.OnChange(func(old, now *appsv1.ControllerRevision) {
		if now != nil {
			return
		}
		if key, ok := ownerOf(old); ok { // a deleted revision is created again
			d.loop.Add(key)
		}
	})
	d.pods.Index(seen.Pod) // before anybody sees the change
	d.pods.OnList(func() { seen.Pods(d.pods.List()) })
	d.pods.OnChange(d.podChanged)
	return d
}

// Run works until ctx ends.
func (d *Controller) Run(ctx context.Context, ready func()) error {
	return loop.Drive(ctx, ready, []supervise.Source{d.nodes, d.pods, d.revisions, d.sets}, d.loop.Workers(workers))
}

// nodeChanged wakes every set, except for heartbeats of the node.
func (d *Controller) nodeChanged(old, now *corev1.Node) {
	if old != nil && now != nil && maps.Equal(old.Labels, now.Labels) && apiequality.Semantic.DeepEqual(old.Spec.Taints, now.Spec.Taints) {
		return
	}
	for _, ds := range d.sets.List() {
		d.loop.Add(loop.Key{Namespace: ds.Namespace, Name: ds.Name})
	}
}

func ownerOf(p api.Object) (loop.Key, bool) {
	ref := metav1.GetControllerOfNoCopy(p)
	if ref == nil || ref.Kind != api.DaemonSets.Kind || ref.APIVersion != api.DaemonSets.APIVersion() {
		return loop.Key{}, false
	}
	return loop.Key{Namespace: p.GetNamespace(), Name: ref.Name}, true
}

func (d *Controller) podChanged(old, now *corev1.Pod) {
	if old != nil {
		if key, ok := ownerOf(old); ok {
			d.loop.Add(key)
		}
	}
	if now == nil {
		return
	}
	key, ok := ownerOf(now)
	if !ok {
		d.wakeAdopters(old, now)
		return
	}
	d.loop.Add(key)
}

// wakeAdopters wakes the sets that may adopt a pod without a controller.
func (d *Controller) wakeAdopters(old, now *corev1.Pod) {
	if metav1.GetControllerOfNoCopy(now) != nil || old != nil && maps.Equal(old.Labels, now.Labels) {
		return
	}
	for _, ds := range d.sets.List() {
		sel, err := metav1.LabelSelectorAsSelector(ds.Spec.Selector)
		if err == nil && owner.RelationOf(ds, sel, now) == owner.Adopt {
			d.loop.Add(loop.Key{Namespace: ds.Namespace, Name: ds.Name})
		}
	}
}

func (d *Controller) reconcile(ctx context.Context, key loop.Key) error {
	ds, ok := d.sets.Get(key.Namespace, key.Name)
	if !ok {
		d.expect.Forget(key)
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(ds.Spec.Selector)
	if err != nil {
		return nil // validation refuses such a selector
	}
	// Checked before the pods are read: a write that is settled now is among the pods that are read afterwards.
	settled, err := d.expect.Settled(ctx, key)
	if err != nil {
		return err
	}
	mine, err := owner.Claim(ctx, d.client, ds, selector, d.podsOf.Candidates(ds))
	if err != nil {
		return err
	}
	hash, err := d.revise(ctx, ds, mine)
	if err != nil {
		return err
	}
	v := &view{ds: ds, nodes: d.nodes.List(), pods: group(mine), hash: hash, now: d.now(), ready: d.seen.Ready}
	var failed error
	if settled {
		failed = d.carryOut(ctx, key, v, decide(v))
	}
	if err := d.report(ctx, key, v); err != nil {
		return err
	}
	return failed
}

func (d *Controller) carryOut(ctx context.Context, key loop.Key, v *view, p plan) error {
	for _, pod := range p.failed {
		if d.mayReplace(key, v.ds, pod) {
			d.record.Event(v.ds, corev1.EventTypeWarning, "FailedDaemonPod", "Found failed daemon pod %s/%s on node %s, will try to kill it",
				pod.Namespace, pod.Name, nodeOf(pod))
			p.remove = append(p.remove, pod)
		}
	}
	made := make([]*corev1.Pod, len(p.create))
	for i, node := range p.create {
		made[i] = podFor(v.ds, node, v.hash)
	}
	createErr := d.control.CreateAll(ctx, v.ds, d.expect, made)
	deleteErr := d.control.DeleteAll(ctx, v.ds, d.expect, p.remove)
	switch {
	case apierrors.HasStatusCause(createErr, corev1.NamespaceTerminatingCause):
		return nil
	case createErr != nil:
		return createErr
	}
	return deleteErr
}

// mayReplace reports whether a failed pod may be replaced now; if not, the set is queued again for when it may.
func (d *Controller) mayReplace(key loop.Key, ds *appsv1.DaemonSet, pod *corev1.Pod) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	id, now := string(ds.UID)+"/"+nodeOf(pod), d.now()
	b, known := d.failures[id]
	if known && now.Before(b.at.Add(b.wait)) {
		d.loop.AddAfter(key, b.at.Add(b.wait).Sub(now))
		return false
	}
	if !known || now.Sub(b.at) > 2*maxBackoff {
		b.wait = minBackoff / 2
	}
	d.failures[id] = backoff{wait: min(2*b.wait, maxBackoff), at: now}
	return true
}

// podFor is the pod of a set for one node.
func podFor(ds *appsv1.DaemonSet, node, hash string) *corev1.Pod {
	p := pods.FromTemplate(&ds.Spec.Template, ds)
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	p.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] = hash
	p.Spec.Tolerations = placement.DaemonTolerations(&ds.Spec.Template.Spec)
	p.Spec.Affinity = bindTo(ds.Spec.Template.Spec.Affinity, node)
	return p
}

func (d *Controller) report(ctx context.Context, key loop.Key, v *view) error {
	s, lookAgain := v.status()
	if lookAgain > 0 {
		d.loop.AddAfter(key, lookAgain)
	}
	if apiequality.Semantic.DeepEqual(s, v.ds.Status) {
		return nil
	}
	upd := v.ds.DeepCopy()
	upd.Status = s
	_, err := d.client.Update(ctx, upd, client.WriteOptions{Subresource: "status"})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
