package validation

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
)

// systemPrefix is the prefix of names that only the cluster's own classes may have.
const systemPrefix = "system-"

// PriorityClass checks a priority class: values of users' classes must be below those of the system's.
func PriorityClass(pc *schedulingv1.PriorityClass) field.ErrorList {
	var errs field.ErrorList
	switch {
	case strings.HasPrefix(pc.Name, systemPrefix):
		if !slices.ContainsFunc(api.SystemPriorityClasses(), func(s *schedulingv1.PriorityClass) bool {
			return s.Name == pc.Name && s.Value == pc.Value && !pc.GlobalDefault
		}) {
			errs = append(errs, field.Forbidden(field.NewPath("metadata", "name"),
				"priority class names with '"+systemPrefix+"' prefix are reserved for system use only"))
		}
	case pc.Value > api.HighestUserPriority:
		errs = append(errs, field.Forbidden(field.NewPath("value"),
			fmt.Sprintf("maximum allowed value of a user defined priority is %d", api.HighestUserPriority)))
	}
	return append(errs, optional(field.NewPath("preemptionPolicy"), pc.PreemptionPolicy, corev1.PreemptLowerPriority, corev1.PreemptNever)...)
}

// PriorityClassUpdate checks the change from old: the value must not change, since pods hold copies of it.
func PriorityClassUpdate(pc, old *schedulingv1.PriorityClass) field.ErrorList {
	var errs field.ErrorList
	if pc.Value != old.Value {
		errs = append(errs, field.Forbidden(field.NewPath("value"), "may not be changed in an update."))
	}
	return append(errs, apivalidation.ValidateImmutableField(pc.PreemptionPolicy, old.PreemptionPolicy, field.NewPath("preemptionPolicy"))...)
}
