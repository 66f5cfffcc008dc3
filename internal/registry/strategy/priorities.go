package strategy

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/defaults"
	"minik8s/internal/api/validation"
	"minik8s/internal/registry"
)

func priorityClassStrategy() *registry.Strategy {
	return &registry.Strategy{
		Default:        onOne(defaults.PriorityClass),
		Validate:       checkOne(validation.PriorityClass),
		ValidateUpdate: checkStep(validation.PriorityClassUpdate),
		Admit:          admitClass,
		AdmitUpdate:    func(obj, _ api.Object, others registry.Lister) error { return admitClass(obj, others) },
		Exclusive: func(obj, _ api.Object) []string {
			if obj.(*schedulingv1.PriorityClass).GlobalDefault {
				return []string{"default-priorityclass"}
			}
			return nil
		},
	}
}

// classOf returns the priority class that a pod names, or the default class if it names none; nil if it does not
// exist. The system's classes always exist.
func classOf(name string, others registry.Lister) *schedulingv1.PriorityClass {
	if name == "" {
		return defaultClass(others)
	}
	for _, pc := range api.SystemPriorityClasses() {
		if pc.Name == name {
			return pc
		}
	}
	pc, _ := others.Get(api.PriorityClasses, "", name).(*schedulingv1.PriorityClass)
	return pc
}

// defaultClass returns the class of pods that name none; nil if there is no default. Of two created at the same
// moment it is the one with the lower value, as in Kubernetes.
func defaultClass(others registry.Lister) *schedulingv1.PriorityClass {
	var found *schedulingv1.PriorityClass
	for _, obj := range others.List(api.PriorityClasses) {
		if pc := obj.(*schedulingv1.PriorityClass); pc.GlobalDefault && (found == nil || pc.Value < found.Value) {
			found = pc
		}
	}
	return found
}

// admitClass ensures that there is at most one default class.
func admitClass(obj api.Object, others registry.Lister) error {
	pc := obj.(*schedulingv1.PriorityClass)
	if other := defaultClass(others); pc.GlobalDefault && other != nil && other.Name != pc.Name {
		return fmt.Errorf("PriorityClass %v is already marked as default. Only one default can exist", other.Name)
	}
	return nil
}

// admitPriority gives a pod the priority of its class, or 0. A pod may repeat that value, as a pod read from the API
// does, but not set another.
func admitPriority(spec *corev1.PodSpec, others registry.Lister) error {
	name, value, policy := spec.PriorityClassName, int32(0), corev1.PreemptLowerPriority
	switch pc := classOf(name, others); {
	case pc != nil:
		name, value = pc.Name, pc.Value
		if pc.PreemptionPolicy != nil {
			policy = *pc.PreemptionPolicy
		}
	case name != "":
		return fmt.Errorf("no PriorityClass with name %v was found", name)
	}
	if p := spec.Priority; p != nil && *p != value {
		return fmt.Errorf("the integer value of priority (%d) must not be provided in pod spec; "+
			"priority admission controller computed %d from the given PriorityClass name", *p, value)
	}
	if p := spec.PreemptionPolicy; p != nil && *p != policy {
		return fmt.Errorf("the string value of PreemptionPolicy (%s) must not be provided in pod spec; "+
			"priority admission controller computed %s from the given PriorityClass name", *p, policy)
	}
	spec.PriorityClassName, spec.Priority, spec.PreemptionPolicy = name, &value, &policy
	return nil
}

// keepPriority keeps a pod's priority when an update omits what admission has set.
func keepPriority(spec, old *corev1.PodSpec) {
	if spec.Priority == nil {
		spec.Priority = old.Priority
	}
	if spec.PreemptionPolicy == nil {
		spec.PreemptionPolicy = old.PreemptionPolicy
	}
}
