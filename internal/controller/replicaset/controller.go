package replicaset

import (
	"context"
	"log/slog"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/controller/expect"
	"minik8s/internal/controller/loop"
	"minik8s/internal/controller/owner"
	"minik8s/internal/controller/pods"
	"minik8s/internal/events"
	"minik8s/internal/informer"
	"minik8s/internal/supervise"
)

// workers is how many replica sets are worked on at once.
const workers = 5

// Controller is the controller.
type Controller struct {
	client  client.Interface
	control pods.Control
	sets    *informer.Informer[*appsv1.ReplicaSet]
	setsOf  *owner.Index[*appsv1.ReplicaSet] // by the Deployment
	pods    *informer.Informer[*corev1.Pod]
	podsOf  *owner.Index[*corev1.Pod]
	expect  *expect.Tracker[*corev1.Pod]
	loop    *loop.Loop

	mu      sync.Mutex
	changes map[types.UID]change
	now     func() time.Time
}

// change is when a set's spec was last seen to change, and whether it is known that its pods are held back.
type change struct {
	generation int64
	at         time.Time
	told       bool
}

// New makes the controller.
func New(c client.Interface, record *events.Recorder, log *slog.Logger) *Controller {
	r := &Controller{client: c, control: pods.Control{Client: c, Record: record}, now: time.Now, changes: map[types.UID]change{},
		sets: informer.New[*appsv1.ReplicaSet](c, api.ReplicaSets, informer.Options{Log: log}),
		pods: informer.New[*corev1.Pod](c, api.Pods, informer.Options{Log: log}),
	}
	r.setsOf, r.podsOf = owner.NewIndex(r.sets), owner.NewIndex(r.pods)
	r.loop = loop.New("replicaset", log, r.reconcile)
	r.expect = expect.New(c, r.pods, r.loop.Add)
	r.sets.OnChange(func(old, now *appsv1.ReplicaSet) {
		r.noteChange(old, now)
		if now != nil {
			r.loop.Add(keyOf(now))
		} else {
			r.loop.Add(keyOf(old))
		}
	})
	r.pods.OnChange(r.podChanged)
	return r
}

// noteChange keeps when specs change. For a set that was there before us that is unknown, and so long ago.
func (r *Controller) noteChange(old, now *appsv1.ReplicaSet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case now == nil:
		delete(r.changes, old.UID)
	case old == nil:
		r.changes[now.UID] = change{generation: now.Generation}
	case r.changes[now.UID].generation != now.Generation:
		r.changes[now.UID] = change{generation: now.Generation, at: r.now().Truncate(time.Second)} // as pods' ages are
	}
}

// holdBack has a set come again when its pods may be made, and tells people when that begins.
func (r *Controller) holdBack(rs *appsv1.ReplicaSet, wait time.Duration) {
	r.mu.Lock()
	c, known := r.changes[rs.UID]
	begins := wait > 0 && !c.told
	if c.told = wait > 0; known {
		r.changes[rs.UID] = c
	}
	r.mu.Unlock()
	if begins {
		r.control.Record.Event(rs, corev1.EventTypeWarning, "BackOff", "Its pods fail as soon as they are made: waiting longer before each new round of them")
	}
	if wait > 0 {
		r.loop.AddAfter(keyOf(rs), wait)
	}
}

func (r *Controller) changedAt(rs *appsv1.ReplicaSet) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changes[rs.UID].at
}

// Run works until ctx ends.
func (r *Controller) Run(ctx context.Context, ready func()) error {
	return loop.Drive(ctx, ready, []supervise.Source{r.sets, r.pods}, r.loop.Workers(workers))
}

func keyOf(obj api.Object) loop.Key {
	return loop.Key{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// ownerOf is the replica set that a pod names as its controller.
func ownerOf(p *corev1.Pod) (loop.Key, types.UID, bool) {
	if p == nil {
		return loop.Key{}, "", false
	}
	ref := metav1.GetControllerOfNoCopy(p)
	if ref == nil || ref.Kind != api.ReplicaSets.Kind || ref.APIVersion != api.ReplicaSets.APIVersion() {
		return loop.Key{}, "", false
	}
	return loop.Key{Namespace: p.Namespace, Name: ref.Name}, ref.UID, true
}

func (r *Controller) podChanged(old, now *corev1.Pod) {
	if old != nil {
		if key, uid, ok := ownerOf(old); ok {
			if _, newUID, still := ownerOf(now); !still || newUID != uid {
				r.loop.Add(key)
			}
		}
	}
	if now == nil {
		return
	}
	if key, _, ok := ownerOf(now); ok {
		r.loop.Add(key)
		return
	}
	if metav1.GetControllerOfNoCopy(now) == nil && now.DeletionTimestamp == nil {
		r.offer(old, now)
	}
}

// offer wakes the replica sets that may adopt a pod which is nobody's.
func (r *Controller) offer(old, now *corev1.Pod) {
	if old != nil && metav1.GetControllerOfNoCopy(old) == nil && apiequality.Semantic.DeepEqual(old.Labels, now.Labels) {
		return // its status only
	}
	for _, rs := range r.sets.List() {
		if rs.Namespace != now.Namespace || rs.DeletionTimestamp != nil {
			continue
		}
		if sel, err := metav1.LabelSelectorAsSelector(rs.Spec.Selector); err == nil && owner.Judge(rs, sel, now) == owner.Adopt {
			r.loop.Add(keyOf(rs))
		}
	}
}

func (r *Controller) reconcile(ctx context.Context, key loop.Key) error {
	rs, ok := r.sets.Get(key.Namespace, key.Name)
	if !ok {
		r.expect.Forget(key)
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(rs.Spec.Selector)
	if err != nil {
		return nil // validation lets none in; there is nothing to be done about it
	}
	settled, err := r.expect.Settled(ctx, key) // asked before the pods are read, so that they show what it saw
	if err != nil {
		return err
	}
	var active, ended []*corev1.Pod
	var terminating int32
	for _, p := range r.podsOf.Candidates(rs) {
		switch {
		case pods.Active(p):
			active = append(active, p)
		case !metav1.IsControlledBy(p, rs):
		case pods.Terminating(p):
			terminating++
		case p.Status.Phase == corev1.PodFailed:
			ended = append(ended, p)
		}
	}
	active, err = owner.Claim(ctx, r.client, rs, selector, active)
	if err != nil {
		return err
	}
	var p plan
	var failed error
	if settled {
		p = decide(rs, active, ended, r.related(rs, active), r.changedAt(rs), r.now())
		r.holdBack(rs, p.lookAgain)
		failed = r.carryOut(ctx, rs, p)
	}
	if err := r.report(ctx, rs, active, terminating, p, failed, settled); err != nil {
		return err
	}
	return failed
}

// related are the pods of all replica sets of the same Deployment.
func (r *Controller) related(rs *appsv1.ReplicaSet, own []*corev1.Pod) []*corev1.Pod {
	ref := metav1.GetControllerOfNoCopy(rs)
	if ref == nil || len(own) <= int(wanted(rs)) {
		return own
	}
	var all []*corev1.Pod
	for _, sibling := range r.setsOf.Owned(ref.UID) {
		all = append(all, r.podsOf.Owned(sibling.UID)...)
	}
	return all
}

func (r *Controller) carryOut(ctx context.Context, rs *appsv1.ReplicaSet, p plan) error {
	if len(p.remove) > 0 {
		return r.control.DeleteAll(ctx, rs, r.expect, p.remove)
	}
	made := make([]*corev1.Pod, p.create)
	for i := range made {
		made[i] = pods.FromTemplate(&rs.Spec.Template, rs)
	}
	err := r.control.CreateAll(ctx, rs, r.expect, made)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	return err
}

func (r *Controller) report(ctx context.Context, rs *appsv1.ReplicaSet, active []*corev1.Pod, terminating int32, p plan, failed error, settled bool) error {
	s, lookAgain := status(rs, active, terminating, p, failed, r.now())
	if !settled { // what was counted is not all there is: whoever waits for us must not believe it yet
		s.ObservedGeneration = rs.Status.ObservedGeneration
	}
	if lookAgain > 0 {
		r.loop.AddAfter(keyOf(rs), lookAgain)
	}
	if apiequality.Semantic.DeepEqual(s, rs.Status) {
		return nil
	}
	upd := rs.DeepCopy()
	upd.Status = s
	_, err := r.client.Update(ctx, upd, client.WriteOptions{Subresource: "status"})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
