package registry

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/api/placement"
)

// Binding gives a pod its node.
type Binding struct {
	Node string
	// UID, if it is set, is that of the pod which is meant.
	UID types.UID
	// Annotations are added to the pod's.
	Annotations map[string]string
}

// Bind gives a pod its node, once: pods/binding.
func (r *Registry) Bind(ctx context.Context, q *Request, b Binding, opts WriteOptions) (*Entry, error) {
	if err := r.authorizeAs(ctx, "create", q); err != nil {
		return nil, err
	}
	return r.modify(ctx, q, opts, true, func(old api.Object) (api.Object, error) { return bound(old, b, r.now()) })
}

// bound is the pod old with its node. A pod is bound once, and not any more when it is going.
func bound(old api.Object, b Binding, now time.Time) (api.Object, error) {
	before, ok := old.(*corev1.Pod)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("a %T cannot be bound to a node", old))
	}
	if messages := apivalidation.NameIsDNSSubdomain(b.Node, false); len(messages) > 0 {
		var errs field.ErrorList
		for _, m := range messages {
			errs = append(errs, field.Invalid(field.NewPath("target", "name"), b.Node, m))
		}
		return nil, invalid(api.Pods, before.Name, errs)
	}
	switch {
	case b.UID != "" && b.UID != before.UID:
		return nil, conflictf(api.Pods, before.Name, "the pod was deleted and made anew with uid %s", before.UID)
	case before.DeletionTimestamp != nil:
		return nil, conflictf(api.Pods, before.Name, "pod %s is being deleted, cannot be assigned to a host", before.Name)
	case len(before.Spec.SchedulingGates) > 0:
		return nil, conflictf(api.Pods, before.Name, "pod %s has non-empty .spec.schedulingGates", before.Name)
	case before.Spec.NodeName != "":
		return nil, conflictf(api.Pods, before.Name, "pod %s is already assigned to node %q", before.Name, before.Spec.NodeName)
	}
	pod := before.DeepCopy()
	pod.Spec.NodeName = b.Node
	if len(b.Annotations) > 0 && pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	maps.Copy(pod.Annotations, b.Annotations)
	placement.Refusals(nil).Publish(pod) // it has a node now
	scheduled := corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(now.UTC().Truncate(time.Second)),
	}
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodScheduled {
			pod.Status.Conditions[i] = scheduled
			return pod, nil
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, scheduled)
	return pod, nil
}
