package replicaset

import (
	"context"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
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

// Controller is the controller.
type Controller struct {
	client  client.Interface
	control pods.Control
	pods    *informer.Informer[*corev1.Pod]
	podsOf  *owner.Index[*corev1.Pod]
	kinds   []*kindController
	now     func() time.Time
	seen    *sightings.Sightings
}

// kindController controls the sets of one kind.
type kindController struct {
	*Controller
	form
	sets   *informer.Informer[api.Object]
	setsOf *owner.Index[api.Object] // by the Deployment
	expect *expect.Tracker[*corev1.Pod]
	loop   *loop.Loop

	mu      sync.Mutex
	changes map[types.UID]change
}

// change is when a set's spec was last seen to change, and whether an Event has announced the back-off of its pods.
type change struct {
	generation int64
	at         time.Time
	announced  bool
}

// New makes the controller. seen says since when pods are ready.
func New(c client.Interface, views *informer.Views, record *events.Recorder, seen *sightings.Sightings, log *slog.Logger) *Controller {
	r := &Controller{client: c, seen: seen, control: pods.Control{Client: c, Record: record}, now: clock.Now,
		pods: informer.New[*corev1.Pod](c, api.Pods, informer.Options{Views: views, Log: log}),
	}
	r.podsOf = owner.NewIndex(r.pods)
	for _, f := range []form{replicaSets, replicationControllers} {
		r.kinds = append(r.kinds, newKindController(r, f, views, log))
	}
	r.pods.Index(seen.Pod) // before anybody sees the change
	r.pods.OnList(func() { seen.Pods(r.pods.List()) })
	r.pods.OnChange(func(old, now *corev1.Pod) {
		for _, k := range r.kinds {
			k.podChanged(old, now)
		}
	})
	return r
}

func newKindController(r *Controller, f form, views *informer.Views, log *slog.Logger) *kindController {
	k := &kindController{Controller: r, form: f, changes: map[types.UID]change{},
		sets: informer.New[api.Object](r.client, f.kind, informer.Options{Views: views, Log: log})}
	k.setsOf = owner.NewIndex(k.sets)
	k.loop = loop.New(f.queue, log, k.reconcile)
	k.expect = expect.New(r.client, r.pods, k.loop.Add)
	k.sets.OnChange(func(old, now api.Object) {
		k.noteChange(old, now)
		if now != nil {
			k.loop.Add(keyOf(now))
		} else {
			k.loop.Add(keyOf(old))
		}
	})
	return k
}

// Run works until ctx ends.
func (r *Controller) Run(ctx context.Context, ready func()) error {
	var sources []supervise.Source
	var loops []loop.Crew
	for _, k := range r.kinds {
		sources, loops = append(sources, k.sets), append(loops, k.loop.Workers(k.workers))
	}
	return loop.Drive(ctx, ready, append(sources, r.pods), loops...)
}

// noteChange records when specs change. For a set that existed before the controller's start the time is unknown, and
// is taken to be long ago.
func (k *kindController) noteChange(old, now api.Object) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case now == nil:
		delete(k.changes, old.GetUID())
	case old == nil:
		k.changes[now.GetUID()] = change{generation: now.GetGeneration()}
	case k.changes[now.GetUID()].generation != now.GetGeneration():
		k.changes[now.GetUID()] = change{generation: now.GetGeneration(), at: k.now().Truncate(time.Second)} // as precise as pods' creation times
	}
}

// requeueAfterBackoff queues a set again for when its pods may be created, and records an Event when a back-off
// begins.
func (k *kindController) requeueAfterBackoff(of set, wait time.Duration) {
	k.mu.Lock()
	c, known := k.changes[of.obj.GetUID()]
	begins := wait > 0 && !c.announced
	if c.announced = wait > 0; known {
		k.changes[of.obj.GetUID()] = c
	}
	k.mu.Unlock()
	if begins {
		k.control.Record.Event(of.obj, corev1.EventTypeWarning, "BackOff", "Its pods fail as soon as they are made: waiting longer before each new round of them")
	}
	if wait > 0 {
		k.loop.AddAfter(keyOf(of.obj), wait)
	}
}

func (k *kindController) changedAt(of set) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.changes[of.obj.GetUID()].at
}

func keyOf(obj api.Object) loop.Key {
	return loop.Key{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// ownerOf is the set of our kind that a pod names as its controller.
func (k *kindController) ownerOf(p *corev1.Pod) (loop.Key, types.UID, bool) {
	if p == nil {
		return loop.Key{}, "", false
	}
	ref := metav1.GetControllerOfNoCopy(p)
	if ref == nil || ref.Kind != k.kind.Kind || ref.APIVersion != k.kind.APIVersion() {
		return loop.Key{}, "", false
	}
	return loop.Key{Namespace: p.Namespace, Name: ref.Name}, ref.UID, true
}

func (k *kindController) podChanged(old, now *corev1.Pod) {
	if old != nil {
		if key, uid, ok := k.ownerOf(old); ok {
			if _, newUID, still := k.ownerOf(now); !still || newUID != uid {
				k.loop.Add(key)
			}
		}
	}
	if now == nil {
		return
	}
	if key, _, ok := k.ownerOf(now); ok {
		k.loop.Add(key)
		return
	}
	if metav1.GetControllerOfNoCopy(now) == nil && now.DeletionTimestamp == nil {
		k.wakeAdopters(old, now)
	}
}

// wakeAdopters wakes the sets that may adopt a pod without a controller.
func (k *kindController) wakeAdopters(old, now *corev1.Pod) {
	if old != nil && metav1.GetControllerOfNoCopy(old) == nil && apiequality.Semantic.DeepEqual(old.Labels, now.Labels) {
		return // only its status changed
	}
	for _, obj := range k.sets.List() {
		if obj.GetNamespace() != now.Namespace || obj.GetDeletionTimestamp() != nil {
			continue
		}
		if sel, err := metav1.LabelSelectorAsSelector(k.read(obj).spec.Selector); err == nil && owner.RelationOf(obj, sel, now) == owner.Adopt {
			k.loop.Add(keyOf(obj))
		}
	}
}

func (k *kindController) reconcile(ctx context.Context, key loop.Key) error {
	obj, ok := k.sets.Get(key.Namespace, key.Name)
	if !ok {
		k.expect.Forget(key)
		return nil
	}
	of := k.read(obj)
	selector, err := metav1.LabelSelectorAsSelector(of.spec.Selector)
	if err != nil {
		return nil // validation refuses such a selector
	}
	settled, err := k.expect.Settled(ctx, key) // checked before the pods are read, so that they include every settled write
	if err != nil {
		return err
	}
	var active, ended []*corev1.Pod
	var terminating int32
	for _, p := range k.podsOf.Candidates(obj) {
		switch {
		case pods.Active(p):
			active = append(active, p)
		case !metav1.IsControlledBy(p, obj):
		case pods.Terminating(p):
			terminating++
		case p.Status.Phase == corev1.PodFailed:
			ended = append(ended, p)
		}
	}
	active, err = owner.Claim(ctx, k.client, obj, selector, active)
	if err != nil {
		return err
	}
	var p plan
	var failed error
	if settled {
		p = decide(of, active, ended, k.related(of, active), k.changedAt(of), k.now())
		k.requeueAfterBackoff(of, p.lookAgain)
		failed = k.carryOut(ctx, of, p)
	}
	if err := k.updateStatus(ctx, of, active, terminating, p, failed, settled); err != nil {
		return err
	}
	return failed
}

// related are the pods of all sets of the same Deployment.
func (k *kindController) related(of set, own []*corev1.Pod) []*corev1.Pod {
	ref := metav1.GetControllerOfNoCopy(of.obj)
	if ref == nil || len(own) <= int(wanted(of)) {
		return own
	}
	var all []*corev1.Pod
	for _, sibling := range k.setsOf.Owned(ref.UID) {
		all = append(all, k.podsOf.Owned(sibling.GetUID())...)
	}
	return all
}

func (k *kindController) carryOut(ctx context.Context, of set, p plan) error {
	if len(p.remove) > 0 {
		return k.control.DeleteAll(ctx, of.obj, k.expect, p.remove)
	}
	made := make([]*corev1.Pod, p.create)
	for i := range made {
		made[i] = pods.FromTemplate(&of.spec.Template, of.obj)
	}
	err := k.control.CreateAll(ctx, of.obj, k.expect, made)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	return err
}

func (k *kindController) updateStatus(ctx context.Context, of set, active []*corev1.Pod, terminating int32, p plan, failed error, settled bool) error {
	s, lookAgain := status(of, active, terminating, p, failed, k.seen.Ready, k.now())
	if !settled { // not all pods are counted yet: a Deployment that waits must not take this status as current
		s.ObservedGeneration = of.status.ObservedGeneration
	}
	if lookAgain > 0 {
		k.loop.AddAfter(keyOf(of.obj), lookAgain)
	}
	upd := k.report(of.obj, s)
	if upd == nil {
		return nil
	}
	_, err := k.client.Update(ctx, upd, client.WriteOptions{Subresource: "status"})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
