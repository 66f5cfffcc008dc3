package validation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
)

// nameRule is what the name of an object of this type must look like.
func nameRule(obj api.Object) apivalidation.ValidateNameFunc {
	switch obj.(type) {
	case *corev1.Namespace:
		return apivalidation.NameIsDNSLabel
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

// ObjectMeta checks the metadata of an object whose name has been generated if it was to be.
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

// say is an error at path for each of the messages of a rule of apimachinery.
func say(path *field.Path, value any, messages []string) field.ErrorList {
	var errs field.ErrorList
	for _, m := range messages {
		errs = append(errs, field.Invalid(path, value, m))
	}
	return errs
}

// oneOf: a field that must have one of a few values.
func oneOf[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	switch {
	case slices.Contains(allowed, value):
		return nil
	case value == "":
		return field.ErrorList{field.Required(path, "")}
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

// optional: like oneOf, but the field may be left out.
func optional[T ~string](path *field.Path, value *T, allowed ...T) field.ErrorList {
	if value == nil {
		return nil
	}
	return oneOf(path, *value, allowed...)
}

// required: a string that must not be empty.
func required(path *field.Path, value string) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return nil
}

// nonNegative: numbers that must not be below zero.
func nonNegative[T ~int32 | ~int64](path *field.Path, value T) field.ErrorList {
	return apivalidation.ValidateNonnegativeField(int64(value), path)
}
