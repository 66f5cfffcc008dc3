package job

import (
	"context"
	"log/slog"
	"maps"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
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

const workers = 5

// Controller is the controller.
type Controller struct {
	client  client.Interface
	record  *events.Recorder
	control pods.Control
	jobs    *informer.Informer[*batchv1.Job]
	pods    *informer.Informer[*corev1.Pod]
	podsOf  *owner.Index[*corev1.Pod]
	expect  *expect.Tracker[*corev1.Pod]
	// saved tracks the statuses that were written. Once pods are untracked, only the status counts them, so nothing
	// may be planned from an older one.
	saved   *expect.Tracker[*batchv1.Job]
	loop    *loop.Loop
	orphans *loop.Loop // pods with our finalizer whose job may be deleted
	now     func() time.Time
	seen    *sightings.Sightings
}

// New makes the controller.
func New(c client.Interface, views *informer.Views, record *events.Recorder, seen *sightings.Sightings, log *slog.Logger) *Controller {
	j := &Controller{client: c, record: record, seen: seen, control: pods.Control{Client: c, Record: record}, now: clock.Now,
		jobs: informer.New[*batchv1.Job](c, api.Jobs, informer.Options{Views: views, Log: log}),
		pods: informer.New[*corev1.Pod](c, api.Pods, informer.Options{Views: views, Log: log}),
	}
	j.podsOf = owner.NewIndex(j.pods)
	j.loop = loop.New("job", log, j.reconcile)
	j.expect, j.saved = expect.New(c, j.pods, j.loop.Add), expect.New(c, j.jobs, j.loop.Add)
	j.orphans = loop.New("job-orphans", log, j.releaseOrphan)
	j.jobs.OnChange(func(old, now *batchv1.Job) {
		if now != nil {
			j.loop.Add(keyOf(now))
			return
		}
		j.expect.Forget(keyOf(old))
		j.saved.Forget(keyOf(old))
		j.letGo(old)
	})
	j.pods.OnChange(j.podChanged)
	return j
}

// letGo queues the pods of a deleted job. Some may have lost their owner before the watch showed that the job is being
// deleted: then they were left for the job to adopt.
func (j *Controller) letGo(job *batchv1.Job) {
	selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
	for _, p := range j.podsOf.Candidates(job) {
		switch {
		case !tracked(p):
		case metav1.GetControllerOfNoCopy(p) != nil:
			j.orphans.Add(keyOf(p))
		case err == nil && selector.Matches(labels.Set(p.Labels)):
			j.wakeAdopters(nil, p)
		}
	}
}

// Run works until ctx ends. The pods are listed after the jobs, so a UID in a job's status that no pod has is that of
// a deleted pod, not of one that the informer has yet to show.
func (j *Controller) Run(ctx context.Context, ready func()) error {
	return loop.Drive(ctx, ready, []supervise.Source{j.jobs, j.pods}, j.loop.Workers(workers), j.orphans.Workers(1))
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
			j.loop.Add(key)
		}
	}
	if now == nil {
		return
	}
	key, uid, ok := ownerOf(now)
	if !ok {
		j.wakeAdopters(old, now)
		return
	}
	j.loop.Add(key)
	if job, known := j.jobs.Get(key.Namespace, key.Name); tracked(now) && (!known || job.UID != uid) {
		j.orphans.Add(keyOf(now))
	}
}

// wakeAdopters wakes the jobs that may adopt a pod without a controller. If there is none, the pod need not be
// tracked.
func (j *Controller) wakeAdopters(old, now *corev1.Pod) {
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
	return err == nil && owner.RelationOf(job, sel, p) == owner.Adopt
}

// releaseOrphan removes the finalizer from a pod whose job is deleted: no job will count it.
func (j *Controller) releaseOrphan(ctx context.Context, key loop.Key) error {
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
	saved, err := j.saved.Settled(ctx, key)
	if err != nil {
		return err
	}
	job, ok := j.jobs.Get(key.Namespace, key.Name)
	if !ok {
		return nil
	}
	if deleted, err := j.expire(ctx, job); deleted || err != nil {
		return err
	}
	if managedByOther(job) {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
	if err != nil {
		return nil // validation refuses such a selector
	}
	if !saved {
		return nil // the watch will show the newer status, and then wakes this job
	}
	settled, err := j.expect.Settled(ctx, key) // checked before the pods are read, so that they include every settled write
	if err != nil {
		return err
	}
	list, err := owner.Claim(ctx, j.client, job, selector, j.podsOf.Candidates(job), batchv1.JobTrackingFinalizer)
	if err != nil {
		return err
	}
	p := decide(job, list, settled, j.seen.Start(job), j.now())
	if p.lookAgain > 0 {
		j.loop.AddAfter(key, p.lookAgain)
	}
	return j.carryOut(ctx, key, job, &p)
}

// managedByOther reports whether spec.managedBy leaves a job to another controller (KEP-4368).
func managedByOther(job *batchv1.Job) bool {
	return job.Spec.ManagedBy != nil && *job.Spec.ManagedBy != batchv1.JobControllerName
}

func (j *Controller) carryOut(ctx context.Context, key loop.Key, job *batchv1.Job, p *plan) error {
	if p.changed {
		upd := job.DeepCopy()
		upd.Status = p.status
		saved, err := j.client.Update(ctx, upd, client.WriteOptions{Subresource: "status"})
		if err != nil {
			j.saved.Failed(key, job, err)
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		}
		j.saved.Wrote(key, saved.(*batchv1.Job))
	}
	for _, e := range p.events {
		j.record.Event(job, e.kind, e.reason, "%s", e.message)
	}
	if err := pods.All(len(p.untrack), func(i int) error { return j.untrack(ctx, p.untrack[i]) }); err != nil {
		return err
	}
	if err := j.control.DeleteAll(ctx, job, j.expect, p.end); err != nil {
		return err
	}
	if err := j.discard(ctx, job, p.remove); err != nil {
		return err
	}
	made := make([]*corev1.Pod, len(p.create))
	for i, w := range p.create {
		made[i] = podFor(job, w)
	}
	err := j.control.CreateAll(ctx, job, j.expect, made)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	return err
}

// discard deletes pods that are not to be counted. Each pod is deleted right after it is untracked: a pod that is
// untracked but not deleted would run without being counted.
func (j *Controller) discard(ctx context.Context, job *batchv1.Job, list []*corev1.Pod) error {
	return pods.All(len(list), func(i int) error {
		if tracked(list[i]) {
			if err := j.untrack(ctx, list[i]); err != nil {
				return err
			}
		}
		return j.control.DeleteAll(ctx, job, j.expect, list[i:i+1])
	})
}
