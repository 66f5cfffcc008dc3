package deployment

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/controller/expect"
	"minik8s/internal/controller/loop"
	"minik8s/internal/controller/owner"
	"minik8s/internal/events"
	"minik8s/internal/informer"
	"minik8s/internal/supervise"
)

const workers = 5

// Controller is the controller.
type Controller struct {
	client      client.Interface
	record      *events.Recorder
	deployments *informer.Informer[*appsv1.Deployment]
	sets        *informer.Informer[*appsv1.ReplicaSet]
	setsOf      *owner.Index[*appsv1.ReplicaSet]
	expect      *expect.Tracker[*appsv1.ReplicaSet]
	loop        *loop.Loop
	now         func() time.Time
}

// New makes the controller.
func New(c client.Interface, views *informer.Views, record *events.Recorder, log *slog.Logger) *Controller {
	d := &Controller{client: c, record: record, now: clock.Now,
		deployments: informer.New[*appsv1.Deployment](c, api.Deployments, informer.Options{Views: views, Log: log}),
		sets:        informer.New[*appsv1.ReplicaSet](c, api.ReplicaSets, informer.Options{Views: views, Log: log}),
	}
	d.setsOf = owner.NewIndex(d.sets)
	d.loop = loop.New("deployment", log, d.reconcile)
	d.expect = expect.New(c, d.sets, d.loop.Add)
	d.deployments.OnChange(func(old, now *appsv1.Deployment) {
		if now == nil {
			d.expect.Forget(loop.Key{Namespace: old.Namespace, Name: old.Name})
			return
		}
		d.loop.Add(loop.Key{Namespace: now.Namespace, Name: now.Name})
	})
	d.sets.OnChange(d.setChanged)
	return d
}

// Run works until ctx ends.
func (d *Controller) Run(ctx context.Context, ready func()) error {
	return loop.Drive(ctx, ready, []supervise.Source{d.deployments, d.sets}, d.loop.Workers(workers))
}

func (d *Controller) setChanged(old, now *appsv1.ReplicaSet) {
	for _, rs := range []*appsv1.ReplicaSet{old, now} {
		if rs == nil {
			continue
		}
		if ref := metav1.GetControllerOfNoCopy(rs); ref != nil {
			if ref.Kind == api.Deployments.Kind {
				d.loop.Add(loop.Key{Namespace: rs.Namespace, Name: ref.Name})
			}
			continue
		}
		for _, dep := range d.deployments.List() { // a deployment that may adopt it
			sel, err := metav1.LabelSelectorAsSelector(dep.Spec.Selector)
			if err == nil && dep.Namespace == rs.Namespace && owner.RelationOf(dep, sel, rs) == owner.Adopt {
				d.loop.Add(loop.Key{Namespace: dep.Namespace, Name: dep.Name})
			}
		}
	}
}

func (d *Controller) reconcile(ctx context.Context, key loop.Key) error {
	dep, ok := d.deployments.Get(key.Namespace, key.Name)
	if !ok {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(dep.Spec.Selector)
	if err != nil {
		return nil // validation refuses such a selector
	}
	if settled, err := d.expect.Settled(ctx, key); err != nil || !settled {
		return err // the watch will show the sets as written, and then wakes this deployment
	}
	sets, err := owner.Claim(ctx, d.client, dep, selector, d.setsOf.Candidates(dep))
	if err != nil {
		return err
	}
	p := decide(dep, sets, d.now())
	if p.lookAgain > 0 {
		d.loop.AddAfter(key, p.lookAgain)
	}
	if err := d.carryOut(ctx, key, dep, &p); err != nil {
		return err
	}
	return d.report(ctx, dep, &p)
}

// carryOut writes the sets. A conflict means that the decision was made on an old view: the deployment is reconciled
// again.
func (d *Controller) carryOut(ctx context.Context, key loop.Key, dep *appsv1.Deployment, p *plan) error {
	for _, rs := range p.update {
		wrote, err := d.client.Update(ctx, rs, client.WriteOptions{})
		if err != nil {
			d.expect.Failed(key, rs, err)
			return err
		}
		d.expect.Wrote(key, wrote.(*appsv1.ReplicaSet))
		d.recordScaling(dep, p, rs.Name)
	}
	if p.create != nil {
		if err := d.create(ctx, key, dep, p); err != nil {
			return err
		}
	}
	for _, rs := range p.remove {
		_, err := d.client.Delete(ctx, client.KeyOf(rs), &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(rs.UID))})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

// recordScaling records an Event on the deployment of how a set was scaled.
func (d *Controller) recordScaling(dep *appsv1.Deployment, p *plan, set string) {
	for _, s := range p.scaled {
		if s.set != set {
			continue
		}
		way := "up"
		if s.to < s.from {
			way = "down"
		}
		d.record.Event(dep, corev1.EventTypeNormal, scalingReplicaOf, "Scaled %s replica set %s from %d to %d", way, s.set, s.from, s.to)
	}
}

// create makes the set of the current template. If its name is taken, it is either ours, not seen yet, or another
// template has the same hash. Then the hash is computed again with a higher collision count.
func (d *Controller) create(ctx context.Context, key loop.Key, dep *appsv1.Deployment, p *plan) error {
	made, err := d.client.Create(ctx, p.create, client.WriteOptions{})
	if err != nil {
		d.expect.Failed(key, p.create, err)
	}
	switch {
	case err == nil:
		d.expect.Wrote(key, made.(*appsv1.ReplicaSet))
		d.recordScaling(dep, p, p.create.Name)
		return nil
	case apierrors.IsAlreadyExists(err):
		there, getErr := client.Get[*appsv1.ReplicaSet](ctx, d.client, client.KeyOf(p.create))
		if getErr != nil {
			return getErr
		}
		if metav1.IsControlledBy(there, dep) && sameTemplate(&there.Spec.Template, &dep.Spec.Template) {
			return nil
		}
		n := int32(1)
		if c := dep.Status.CollisionCount; c != nil {
			n = *c + 1
		}
		upd := dep.DeepCopy()
		upd.Status.CollisionCount = &n
		if _, updErr := d.client.Update(ctx, upd, client.WriteOptions{Subresource: "status"}); updErr != nil {
			return updErr
		}
		return err
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return err
	}
	d.reportCreateError(ctx, dep, fmt.Sprintf("Failed to create new replica set %q: %v", p.create.Name, err))
	return err
}

// reportCreateError writes to the deployment's status that the set of its template cannot be created.
func (d *Controller) reportCreateError(ctx context.Context, dep *appsv1.Deployment, message string) {
	d.record.Event(dep, corev1.EventTypeWarning, failedToCreate, "%s", message)
	upd := dep.DeepCopy()
	upd.Status.ObservedGeneration = dep.Generation
	s := step{now: d.now()}
	s.set(&upd.Status, appsv1.DeploymentProgressing, corev1.ConditionFalse, failedToCreate, message)
	if hasDeadline(dep) && !apiequality.Semantic.DeepEqual(upd.Status, dep.Status) {
		d.client.Update(ctx, upd, client.WriteOptions{Subresource: "status"}) //nolint:errcheck // creating the set is retried, and so is this
	}
}

// report writes the status and the revision annotation in one update.
func (d *Controller) report(ctx context.Context, dep *appsv1.Deployment, p *plan) error {
	if p.statusSaved {
		return nil
	}
	upd := dep.DeepCopy()
	upd.Status = p.status
	if p.revision != "" {
		upd.Annotations = with(upd.Annotations, revisionAnnotation, p.revision)
	}
	_, err := d.client.Update(ctx, upd, client.WriteOptions{Subresource: "status"})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
