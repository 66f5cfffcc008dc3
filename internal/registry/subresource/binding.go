package subresource

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/api/placement"
	"minik8s/internal/registry"
)

// Binding gives a pod its node, once: pods/binding. The errors are 400, 404, 409 (it has a node, is being deleted or
// waits for gates) and 422.
func Binding() registry.Subresource {
	return registry.Subresource{
		Part: takeBinding,
		Action: &registry.Action{
			Body: func() runtime.Object { return &corev1.Binding{} },
			Do: func(ctx context.Context, o registry.Objects, q *registry.Request, body runtime.Object, opts registry.WriteOptions) (runtime.Object, error) {
				b := body.(*corev1.Binding)
				if b.Target.Name == "" || b.Target.Kind != "" && b.Target.Kind != "Node" {
					return nil, apierrors.NewBadRequest("target: a Binding names a Node: {\"target\":{\"kind\":\"Node\",\"name\":...}}")
				}
				_, err := o.Modify(ctx, q, opts, func(old api.Object) (api.Object, error) { return bound(old, b, o.Now()) })
				return nil, err
			},
		},
	}
}

// takeBinding copies what a binding may change from given, which bound made.
func takeBinding(obj, given api.Object) field.ErrorList {
	pod, from := obj.(*corev1.Pod), given.(*corev1.Pod)
	pod.Spec.NodeName = from.Spec.NodeName
	pod.Annotations = from.Annotations
	pod.Status.Conditions = from.Status.Conditions
	return nil
}

// bound returns the pod old with its node. A pod is bound once, and not when it is being deleted.
func bound(old api.Object, b *corev1.Binding, now time.Time) (api.Object, error) {
	before, ok := old.(*corev1.Pod)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("a %T cannot be bound to a node", old))
	}
	if messages := apivalidation.NameIsDNSSubdomain(b.Target.Name, false); len(messages) > 0 {
		var errs field.ErrorList
		for _, m := range messages {
			errs = append(errs, field.Invalid(field.NewPath("target", "name"), b.Target.Name, m))
		}
		return nil, registry.Invalid(api.Pods, before.Name, errs)
	}
	switch {
	case b.UID != "" && b.UID != before.UID:
		return nil, registry.Conflictf(api.Pods, before.Name, "the pod was deleted and made anew with uid %s", before.UID)
	case before.DeletionTimestamp != nil:
		return nil, registry.Conflictf(api.Pods, before.Name, "pod %s is being deleted, cannot be assigned to a host", before.Name)
	case len(before.Spec.SchedulingGates) > 0:
		return nil, registry.Conflictf(api.Pods, before.Name, "pod %s has non-empty .spec.schedulingGates", before.Name)
	case before.Spec.NodeName != "":
		return nil, registry.Conflictf(api.Pods, before.Name, "pod %s is already assigned to node %q", before.Name, before.Spec.NodeName)
	}
	pod := before.DeepCopy()
	pod.Spec.NodeName = b.Target.Name
	if len(b.Annotations) > 0 && pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	maps.Copy(pod.Annotations, b.Annotations)
	placement.Refusals(nil).Publish(pod) // it has a node now
	setCondition(&pod.Status, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(now.UTC().Truncate(time.Second))})
	return pod, nil
}
