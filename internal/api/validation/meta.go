package validation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
)

// nameRule returns the rule for the name of an object of this type.
func nameRule(obj api.Object) apivalidation.ValidateNameFunc {
	switch obj := obj.(type) {
	case *apiregistrationv1.APIService:
		return apiServiceName(obj)
	case *corev1.Namespace, *corev1.Service: // a part of a domain name
		return apivalidation.NameIsDNSLabel
	case *networkingv1.IPAddress:
		return ipAddressName
	case *minik8s.Function:
		return functionName
	case *minik8s.Workflow:
		return workflowName(maxWorkflowName)
	case *minik8s.WorkflowRun:
		return workflowName(maxRunName)
	case *minik8s.WorkflowStep:
		return workflowName(maxStepName)
	case *corev1.Event:
		return func(name string, prefix bool) []string {
			if prefix {
				return content.IsPathSegmentPrefix(name)
			}
			return content.IsPathSegmentName(name)
		}
	}
	return apivalidation.NameIsDNSSubdomain
}

// ObjectMeta checks the metadata of an object. A name that is to be generated must already be set.
func ObjectMeta(obj api.Object, namespaced bool) field.ErrorList {
	return apivalidation.ValidateObjectMetaAccessor(obj, namespaced, nameRule(obj), field.NewPath("metadata"))
}

// ObjectMetaUpdate checks the metadata of an object that replaces old.
func ObjectMetaUpdate(obj, old api.Object, namespaced bool) field.ErrorList {
	path := field.NewPath("metadata")
	errs := ObjectMeta(obj, namespaced)
	if old.GetDeletionTimestamp() != nil {
		errs = append(errs, apivalidation.ValidateNoNewFinalizers(obj.GetFinalizers(), old.GetFinalizers(), path.Child("finalizers"))...)
	}
	errs = append(errs, apivalidation.ValidateImmutableField(obj.GetName(), old.GetName(), path.Child("name"))...)
	errs = append(errs, apivalidation.ValidateImmutableField(obj.GetNamespace(), old.GetNamespace(), path.Child("namespace"))...)
	return append(errs, apivalidation.ValidateImmutableField(obj.GetUID(), old.GetUID(), path.Child("uid"))...)
}

// say returns an error at path for each message of an apimachinery rule.
func say(path *field.Path, value any, messages []string) field.ErrorList {
	var errs field.ErrorList
	for _, m := range messages {
		errs = append(errs, field.Invalid(path, value, m))
	}
	return errs
}

// oneOf checks that a field has one of the allowed values.
func oneOf[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	switch {
	case slices.Contains(allowed, value):
		return nil
	case value == "":
		return field.ErrorList{field.Required(path, "")}
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

// optional is like oneOf, but the field may be left out.
func optional[T ~string](path *field.Path, value *T, allowed ...T) field.ErrorList {
	if value == nil {
		return nil
	}
	return oneOf(path, *value, allowed...)
}

// required checks that a string is not empty.
func required(path *field.Path, value string) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return nil
}

// nonNegative checks that a number is not below zero.
func nonNegative[T ~int32 | ~int64](path *field.Path, value T) field.ErrorList {
	return apivalidation.ValidateNonnegativeField(int64(value), path)
}
