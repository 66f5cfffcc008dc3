package job

import (
	"context"
	"log/slog"
	"maps"
	"strconv"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
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
)

const workers = 5

// Controller is the controller.
type Controller struct {
	client  client.Interface
	record  *events.Recorder
	control pods.Control
	jobs    *informer.Informer[*batchv1.Job]
	pods    *informer.Informer[*corev1.Pod]
	podsOf  *owner.Index[*corev1.Pod]
	expect  *expect.Tracker
	// saved is the revision of each job's last status that we wrote, by uid. What it counts is counted
	// nowhere else once its pods are untracked, so nothing is planned on an older one.
	saved   sync.Map
	loop    *loop.Loop
	orphans *loop.Loop // pods with our finalizer whose job may be gone
	now     func() time.Time
}

// New makes the controller.
func New(c client.Interface, record *events.Recorder, log *slog.Logger) *Controller {
	j := &Controller{client: c, record: record, control: pods.Control{Client: c, Record: record}, now: time.Now,
		jobs: informer.New[*batchv1.Job](c, api.Jobs, informer.Options{Log: log}),
		pods: informer.New[*corev1.Pod](c, api.Pods, informer.Options{Log: log}),
	}
	j.podsOf = owner.NewIndex(j.pods)
	j.expect = expect.New(func() time.Time { return j.now() })
	j.loop = loop.New("job", log, j.reconcile)
	j.orphans = loop.New("job-orphans", log, j.letGo)
	j.jobs.OnChange(func(old, now *batchv1.Job) {
		if now != nil {
			j.loop.Add(keyOf(now))
			return
		}
		j.expect.Forget(keyOf(old))
		j.saved.Delete(old.UID)
		for _, p := range j.podsOf.Owned(old.UID) {
			j.orphans.Add(keyOf(p))
		}
	})
	j.pods.OnChange(j.podChanged)
	return j
}

// Run works until ctx ends. The pods are listed after the jobs: a UID in a job's status that is no pod's
// then is surely one that has gone, and not one that we have yet to hear of.
func (j *Controller) Run(ctx context.Context, ready func()) error {
	return j.jobs.Run(ctx, func() {
		go j.pods.Run(ctx, func() { //nolint:errcheck // it returns when ctx ends
			go j.loop.Run(ctx, workers)
			go j.orphans.Run(ctx, 1)
			ready()
		})
	})
}

func keyOf(obj api.Object) loop.Key {
	return loop.Key{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

func ownerOf(p *corev1.Pod) (loop.Key, types.UID, bool) {
	ref := metav1.GetControllerOfNoCopy(p)
	if ref == nil || ref.Kind != api.Jobs.Kind || ref.APIVersion != api.Jobs.APIVersion() {
		return loop.Key{}, "", false
	}
	return loop.Key{Namespace: p.Namespace, Name: ref.Name}, ref.UID, true
}

func (j *Controller) podChanged(old, now *corev1.Pod) {
	if old != nil {
		if key, _, ok := ownerOf(old); ok {
			if now == nil || now.DeletionTimestamp != nil {
				j.expect.Deleted(key, old.UID)
			}
			j.loop.Add(key)
		}
	}
	if now == nil {
		return
	}
	key, uid, ok := ownerOf(now)
	if !ok {
		j.offer(old, now)
		return
	}
	if old == nil {
		j.expect.Created(key, 1)
	}
	j.loop.Add(key)
	if job, known := j.jobs.Get(key.Namespace, key.Name); tracked(now) && (!known || job.UID != uid) {
		j.orphans.Add(keyOf(now))
	}
}

// offer wakes the jobs that may adopt a pod which is nobody's; if there is none, it need not be tracked.
func (j *Controller) offer(old, now *corev1.Pod) {
	if metav1.GetControllerOfNoCopy(now) != nil || old != nil && metav1.GetControllerOfNoCopy(old) == nil && maps.Equal(old.Labels, now.Labels) {
		return
	}
	wanted := false
	for _, job := range j.jobs.List() {
		if adopts(job, now) {
			wanted = true
			j.loop.Add(keyOf(job))
		}
	}
	if !wanted && tracked(now) {
		j.orphans.Add(keyOf(now))
	}
}

func adopts(job *batchv1.Job, p *corev1.Pod) bool {
	sel, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
	return err == nil && owner.Judge(job, sel, p) == owner.Adopt
}

// letGo takes the finalizer off a pod whose job is no more: nobody will count it.
func (j *Controller) letGo(ctx context.Context, key loop.Key) error {
	p, ok := j.pods.Get(key.Namespace, key.Name)
	if !ok || !tracked(p) {
		return nil
	}
	if of, uid, owned := ownerOf(p); owned { // ask the API: our view may be late
		job, err := j.client.Get(ctx, client.Key{Kind: api.Jobs, Namespace: of.Namespace, Name: of.Name})
		switch {
		case err == nil && job.GetUID() == uid:
			return nil
		case err != nil && !apierrors.IsNotFound(err):
			return err
		}
	}
	return j.untrack(ctx, p)
}

func (j *Controller) reconcile(ctx context.Context, key loop.Key) error {
	job, ok := j.jobs.Get(key.Namespace, key.Name)
	if !ok {
		return nil
	}
	if gone, err := j.expire(ctx, job); gone || err != nil {
		return err
	}
	selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
	if err != nil {
		return nil // validation lets none in
	}
	if j.stale(job) {
		return nil // the watch brings the newer one, and with it this job again
	}
	settled, wait := j.expect.Settled(key)
	if !settled {
		j.loop.AddAfter(key, wait)
	}
	list, err := owner.Claim(ctx, j.client, job, selector, j.podsOf.Candidates(job), batchv1.JobTrackingFinalizer)
	if err != nil {
		return err
	}
	p := decide(job, list, settled, j.now())
	if p.lookAgain > 0 {
		j.loop.AddAfter(key, p.lookAgain)
	}
	return j.carryOut(ctx, key, job, &p)
}

// stale says that the job as the watch has brought it is older than the status we wrote.
func (j *Controller) stale(job *batchv1.Job) bool {
	saved, ok := j.saved.Load(job.UID)
	if !ok {
		return false
	}
	have, err1 := strconv.ParseInt(job.ResourceVersion, 10, 64)
	want, err2 := strconv.ParseInt(saved.(string), 10, 64)
	return err1 == nil && err2 == nil && have < want
}

func (j *Controller) carryOut(ctx context.Context, key loop.Key, job *batchv1.Job, p *plan) error {
	if p.changed {
		upd := job.DeepCopy()
		upd.Status = p.status
		saved, err := j.client.Update(ctx, upd, client.WriteOptions{Subresource: "status"})
		if err != nil {
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		}
		j.saved.Store(job.UID, saved.GetResourceVersion())
	}
	for _, e := range p.tell {
		j.record.Event(job, e.kind, e.reason, "%s", e.message)
	}
	if err := pods.All(len(p.untrack), func(i int) error { return j.untrack(ctx, p.untrack[i]) }); err != nil {
		return err
	}
	if err := j.remove(ctx, key, job, p.end, false); err != nil {
		return err
	}
	if err := j.remove(ctx, key, job, p.remove, true); err != nil {
		return err
	}
	j.expect.Creates(key, len(p.create))
	done, _, err := pods.SlowStart(len(p.create), func(i int) error {
		return j.control.Create(ctx, podFor(job, p.create[i]), job)
	})
	j.expect.Created(key, len(p.create)-done)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	return err
}

// remove deletes pods; with forget they are not counted.
func (j *Controller) remove(ctx context.Context, key loop.Key, job *batchv1.Job, list []*corev1.Pod, forget bool) error {
	uids := make([]types.UID, len(list))
	for i, p := range list {
		uids[i] = p.UID
	}
	j.expect.Deletes(key, uids...)
	return pods.All(len(list), func(i int) error {
		p := list[i]
		var err error
		if forget && tracked(p) {
			err = j.untrack(ctx, p)
		}
		if err == nil {
			err = j.control.Delete(ctx, p, job)
		}
		current, ok := j.pods.Get(p.Namespace, p.Name)
		if err != nil || !ok || current.UID != p.UID || current.DeletionTimestamp != nil {
			j.expect.Deleted(key, p.UID) // it will not be seen going, or was already
		}
		return err
	})
}
