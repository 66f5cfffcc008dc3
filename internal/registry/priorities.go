package registry

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/api/defaults"
	"minik8s/internal/api/validation"
)

func priorityClassStrategy() *Strategy {
	return &Strategy{
		Default:        onOne(defaults.PriorityClass),
		Validate:       checkOne(validation.PriorityClass),
		ValidateUpdate: checkStep(validation.PriorityClassUpdate),
	}
}

// EnsurePriorityClasses creates the cluster's own priority classes if they are not there.
func (r *Registry) EnsurePriorityClasses(ctx context.Context) error {
	for _, pc := range api.SystemPriorityClasses() {
		_, err := r.Create(ctx, System, api.PriorityClasses, "", pc, WriteOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// classNamed is a priority class; nil if there is none. Those of the system are always there.
func classNamed(name string, peek func(kind *api.Kind, namespace, name string) api.Object) *schedulingv1.PriorityClass {
	for _, pc := range api.SystemPriorityClasses() {
		if pc.Name == name {
			return pc
		}
	}
	pc, _ := peek(api.PriorityClasses, "", name).(*schedulingv1.PriorityClass)
	return pc
}

// admitPriority gives a pod the priority of the class that it names. A pod may repeat the class's number,
// and not say another. One that names no class may say a number itself, which Kubernetes does not let it:
// a cluster of one person needs no classes for two pods.
func admitPriority(spec *corev1.PodSpec, peek func(kind *api.Kind, namespace, name string) api.Object) error {
	if spec.PriorityClassName == "" {
		if p := spec.Priority; p != nil && *p > api.HighestUserPriority {
			return fmt.Errorf("maximum allowed value of a user defined priority is %d: name the class %s for more", api.HighestUserPriority, api.SystemClusterCritical)
		}
		return nil
	}
	pc := classNamed(spec.PriorityClassName, peek)
	if pc == nil {
		return fmt.Errorf("no PriorityClass with name %v was found", spec.PriorityClassName)
	}
	if p := spec.Priority; p != nil && *p != pc.Value {
		return fmt.Errorf("the integer value of priority (%d) must not be provided in pod spec; "+
			"priority admission controller computed %d from the given PriorityClass name", *p, pc.Value)
	}
	spec.Priority = new(pc.Value)
	policy := corev1.PreemptLowerPriority
	if pc.PreemptionPolicy != nil {
		policy = *pc.PreemptionPolicy
	}
	if p := spec.PreemptionPolicy; p != nil && *p != policy {
		return fmt.Errorf("the string value of PreemptionPolicy (%s) must not be provided in pod spec; "+
			"priority admission controller computed %s from the given PriorityClass name", *p, policy)
	}
	spec.PreemptionPolicy = &policy
	return nil
}

// keepPriority leaves a pod its priority when an update does not repeat what admission has given it.
func keepPriority(spec, old *corev1.PodSpec) {
	if spec.Priority == nil {
		spec.Priority = old.Priority
	}
	if spec.PreemptionPolicy == nil {
		spec.PreemptionPolicy = old.PreemptionPolicy
	}
}
