package endpointslice

//lint:file-ignore SA1019 Endpoints are served for those who do not know EndpointSlices

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/controller/expect"
	"minik8s/internal/controller/loop"
)

// reconcileSlices keeps the slices of a Service with a selector.
func (e *Controller) reconcileSlices(ctx context.Context, key loop.Key) error {
	svc, ok := e.services.Get(key.Namespace, key.Name)
	if !ok {
		e.wroteSlices.Forget(key)
		return nil
	}
	settled, err := e.wroteSlices.Settled(ctx, key) // before the slices are read
	if err != nil || !settled {
		return err
	}
	have := e.keptFor(svc)
	if selectorOf(svc) == nil {
		return e.carryOut(ctx, key, plan{remove: have}, e.wroteSlices)
	}
	p := decide(wanted(svc, e.podsOf(key), e.zone), have, likeService(svc), true)
	if svc.DeletionTimestamp != nil { // its pods may go before it does, and their addresses become others'
		p.create = nil
	}
	return e.carryOut(ctx, key, p, e.wroteSlices)
}

// keptFor are the slices of a Service that this controller keeps, and those that nobody owns any more, from a Service of
// that name which was deleted without them: they would lead to pods that are long gone.
func (e *Controller) keptFor(svc *corev1.Service) []*discoveryv1.EndpointSlice {
	out := e.kept(svc, sliceKeeper)
	for _, s := range e.slicesOf.Candidates(svc) {
		if metav1.GetControllerOfNoCopy(s) == nil && s.Labels[discoveryv1.LabelServiceName] == svc.Name &&
			s.Labels[discoveryv1.LabelManagedBy] == sliceKeeper && s.DeletionTimestamp == nil {
			out = append(out, s)
		}
	}
	return out
}

// kept are the slices that belong to an object and that keeper keeps.
func (e *Controller) kept(of api.Object, keeper string) []*discoveryv1.EndpointSlice {
	var out []*discoveryv1.EndpointSlice
	for _, s := range e.slicesOf.Owned(of.GetUID()) {
		if s.Labels[discoveryv1.LabelManagedBy] == keeper && s.DeletionTimestamp == nil {
			out = append(out, s)
		}
	}
	return out
}

// carryOut writes a plan. What adds endpoints comes first, so that a Service is not without them in between.
func (e *Controller) carryOut(ctx context.Context, key loop.Key, p plan, wrote *expect.Tracker[*discoveryv1.EndpointSlice]) error {
	var errs []error
	for _, s := range p.create {
		s.Name, s.GenerateName = api.GenerateName(s.GenerateName), "" // so that a lost answer can be asked about
		stored, err := e.client.Create(ctx, s, client.WriteOptions{})
		switch {
		case err == nil:
			wrote.Wrote(key, stored.(*discoveryv1.EndpointSlice))
		case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		default:
			wrote.Failed(key, s, err)
			errs = append(errs, err)
		}
	}
	for _, s := range p.update {
		stored, err := e.client.Update(ctx, s, client.WriteOptions{})
		if err == nil {
			wrote.Wrote(key, stored.(*discoveryv1.EndpointSlice))
			continue
		}
		wrote.Failed(key, s, err)
		errs = append(errs, err)
	}
	for _, s := range p.remove {
		_, err := e.client.Delete(ctx, client.KeyOf(s), &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(s.UID))})
		if err == nil || apierrors.IsNotFound(err) {
			wrote.Deleted(key, s)
			continue
		}
		wrote.Failed(key, s, err)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// reconcileMirror keeps the slices of Endpoints that people write.
func (e *Controller) reconcileMirror(ctx context.Context, key loop.Key) error {
	from, ok := e.endpoints.Get(key.Namespace, key.Name)
	if !ok {
		e.wroteMirrors.Forget(key) // its slices are collected
		return nil
	}
	settled, err := e.wroteMirrors.Settled(ctx, key)
	if err != nil || !settled {
		return err
	}
	svc, _ := e.services.Get(key.Namespace, key.Name)
	have := e.kept(from, mirrorKeeper)
	if !mirrored(from, svc) {
		return e.carryOut(ctx, key, plan{remove: have}, e.wroteMirrors)
	}
	return e.carryOut(ctx, key, decide(copied(from), have, likeEndpoints(from), false), e.wroteMirrors)
}

// reconcileEndpoints keeps the Endpoints of a Service with a selector, and deletes those of a Service that is gone.
func (e *Controller) reconcileEndpoints(ctx context.Context, key loop.Key) error {
	settled, err := e.wroteEndpoints.Settled(ctx, key)
	if err != nil || !settled {
		return err
	}
	svc, ok := e.services.Get(key.Namespace, key.Name)
	have, exists := e.endpoints.Get(key.Namespace, key.Name)
	switch ours := exists && have.Labels[managedBy] == endpointsOwner; {
	case ok && selectorOf(svc) != nil && (svc.DeletionTimestamp == nil || ours):
	case exists && !ok, ours && svc.Spec.Type == corev1.ServiceTypeExternalName: // as Kubernetes, also those that people wrote
		return e.removeEndpoints(ctx, key, have)
	default:
		e.wroteEndpoints.Forget(key)
		return nil
	}
	want := endpointsOf(svc, e.podsOf(key))
	if !exists {
		stored, err := e.client.Create(ctx, want, client.WriteOptions{})
		return e.noteEndpoints(key, want, stored, err)
	}
	upd := have.DeepCopy()
	upd.Labels, upd.Subsets = want.Labels, want.Subsets
	delete(upd.Annotations, corev1.EndpointsOverCapacity)
	if note, ok := want.Annotations[corev1.EndpointsOverCapacity]; ok {
		metav1.SetMetaDataAnnotation(&upd.ObjectMeta, corev1.EndpointsOverCapacity, note)
	}
	if apiequality.Semantic.DeepEqual(upd, have) {
		return nil
	}
	stored, err := e.client.Update(ctx, upd, client.WriteOptions{})
	return e.noteEndpoints(key, upd, stored, err)
}

func (e *Controller) noteEndpoints(key loop.Key, sent *corev1.Endpoints, stored api.Object, err error) error {
	switch {
	case err == nil:
		e.wroteEndpoints.Wrote(key, stored.(*corev1.Endpoints))
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil
	default:
		e.wroteEndpoints.Failed(key, sent, err)
	}
	return err
}

func (e *Controller) removeEndpoints(ctx context.Context, key loop.Key, have *corev1.Endpoints) error {
	_, err := e.client.Delete(ctx, client.KeyOf(have), &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(have.UID))})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		e.wroteEndpoints.Failed(key, have, err)
		return err
	}
	return nil
}
