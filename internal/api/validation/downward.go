package validation

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// resourcePaths are the resources that a resourceFieldRef may name, besides huge pages of any size.
var resourcePaths = []string{
	"limits.cpu", "limits.ephemeral-storage", "limits.memory",
	"requests.cpu", "requests.ephemeral-storage", "requests.memory",
}

// The allowed divisors: whole or thousandths of CPUs, and for bytes one of each unit.
var (
	cpuDivisors  = []string{"1m", "1"}
	byteDivisors = []string{"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"}
)

// resourceRef checks a reference to a request or limit of a container. As in Kubernetes, the kubelet checks whether a
// container of that name exists.
func resourceRef(r *corev1.ResourceFieldSelector, path *field.Path) field.ErrorList {
	which, name, _ := strings.Cut(r.Resource, ".")
	huge := (which == "limits" || which == "requests") && strings.HasPrefix(name, corev1.ResourceHugePagesPrefix)
	switch at := path.Child("resource"); {
	case r.Resource == "":
		return field.ErrorList{field.Required(at, "")}
	case !huge && !slices.Contains(resourcePaths, r.Resource):
		return field.ErrorList{field.NotSupported(at, r.Resource, resourcePaths)}
	}
	divisors := byteDivisors
	if name == string(corev1.ResourceCPU) {
		divisors = cpuDivisors
	}
	if d := r.Divisor.String(); !r.Divisor.IsZero() && !slices.Contains(divisors, d) {
		return field.ErrorList{field.Invalid(path.Child("divisor"), d,
			"only divisor's values "+strings.Join(divisors, ", ")+" are supported with the "+name+" resource")}
	}
	return nil
}
