package function

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/controller/loop"
	"minik8s/internal/controller/owner"
	"minik8s/internal/function/plan"
)

// addressed is what a function's status says of its address: the address, and the condition; nil: it asks for none.
type addressed struct {
	address   string
	condition *metav1.Condition
}

// keepAddress has a function's Service be as the function asks. What stands in its way is in the condition; the error is one of the API
// alone.
func (f *Controller) keepAddress(ctx context.Context, fn *minik8s.Function) (addressed, error) {
	name := plan.Service(fn.Name)
	have, exists := f.services.Get(fn.Namespace, name)
	ours := exists && metav1.IsControlledBy(have, fn)
	if fn.Spec.Address == "" {
		if !ours {
			return addressed{}, nil
		}
		return addressed{}, f.removeService(ctx, have)
	}
	no := func(reason, format string, args ...any) addressed {
		return addressed{condition: &metav1.Condition{Type: minik8s.FunctionAddressed, Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, args...)}}
	}
	switch {
	case f.port == 0:
		return no("NoPort", "the masters have --function-port=0: functions get no address here"), nil
	case exists && !ours:
		return no("NameTaken", "there is another Service %s", name), nil
	case exists && fn.Spec.Address != minik8s.AddressAuto && have.Spec.ClusterIP != fn.Spec.Address:
		if err := f.removeService(ctx, have); err != nil { // an address cannot be changed
			return addressed{}, err
		}
		return no("Changing", "the Service gets its new address"), nil // its end brings us here again
	case !exists:
		made, err := f.client.Create(ctx, plan.ServiceOf(fn, f.port, owner.Ref(fn)), client.WriteOptions{})
		switch {
		case apierrors.IsAlreadyExists(err): // the informer will show it
			return no("Changing", "the Service is about to be seen"), nil
		case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
			f.loop.AddAfter(keyOf(fn), again) // whoever has the address may give it up
			return no("Refused", "%v", err), nil
		case err != nil:
			return addressed{}, err
		}
		have = made.(*corev1.Service)
	case have.DeletionTimestamp != nil:
		return no("Changing", "the Service is about to go"), nil
	}
	if err := f.keepSlice(ctx, have); err != nil {
		return addressed{}, err
	}
	return addressed{have.Spec.ClusterIP, &metav1.Condition{Type: minik8s.FunctionAddressed, Status: metav1.ConditionTrue, Reason: "Ready",
		Message: fmt.Sprintf("POST http://%s/ from pods and nodes", have.Spec.ClusterIP)}}, nil
}

func (f *Controller) removeService(ctx context.Context, s *corev1.Service) error {
	_, err := f.client.Delete(ctx, client.KeyOf(s), &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(s.UID))})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// keepSlice has the Service of a function lead to the masters.
func (f *Controller) keepSlice(ctx context.Context, service *corev1.Service) error {
	want := plan.SliceOf(service, f.masters(), f.port, owner.Ref(service))
	if len(want.Endpoints) == 0 {
		return nil // no master is known yet: its announcement brings us here again
	}
	have, ok := f.slices.Get(want.Namespace, want.Name)
	if !ok {
		if _, err := f.client.Create(ctx, want, client.WriteOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	}
	upd := have.DeepCopy()
	upd.Labels, upd.Annotations, upd.OwnerReferences, upd.Ports, upd.Endpoints = want.Labels, want.Annotations, want.OwnerReferences, want.Ports, want.Endpoints
	if apiequality.Semantic.DeepEqual(have, upd) {
		return nil
	}
	_, err := f.client.Update(ctx, upd, client.WriteOptions{})
	return err
}

// ofMasters reports whether a slice is one of the API's own Service.
func ofMasters(s *discoveryv1.EndpointSlice) bool {
	return s != nil && s.Namespace == metav1.NamespaceDefault && s.Labels[discoveryv1.LabelServiceName] == api.KubernetesService
}

func (f *Controller) masters() []string {
	var of []*discoveryv1.EndpointSlice
	for _, s := range f.slices.List() {
		if ofMasters(s) {
			of = append(of, s)
		}
	}
	return plan.Masters(of)
}

// followAddresses has functions reconciled whose Service or slice has changed; all of them when masters come or go.
func (f *Controller) followAddresses() {
	f.services.OnChange(func(old, now *corev1.Service) { reconcileOwner(f, old, now, now == nil) })
	f.slices.OnChange(func(old, now *discoveryv1.EndpointSlice) {
		reconcileOwner(f, old, now, now == nil)
		if ofMasters(old) || ofMasters(now) {
			for _, fn := range f.functions.List() {
				if fn.Spec.Address != "" {
					f.loop.Add(keyOf(fn))
				}
			}
		}
	})
}

// reconcileOwner has the function reconciled to which an object belongs that has changed, or has gone.
func reconcileOwner[T api.Object](f *Controller, old, now T, gone bool) {
	if gone {
		now = old
	}
	if name, ok := now.GetAnnotations()[plan.NameAnnotation]; ok {
		f.loop.Add(loop.Key{Namespace: now.GetNamespace(), Name: name})
	}
}
