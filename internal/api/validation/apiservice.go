package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"minik8s/internal/api"
)

// The bounds of the priorities in an APIService, as in Kubernetes.
const (
	maxGroupPriority   = 20000
	maxVersionPriority = 1000
)

// APIService checks an APIService. Its name was checked with its metadata.
func APIService(a *apiregistrationv1.APIService) field.ErrorList {
	var errs field.ErrorList
	s := &a.Spec
	gv := schema.GroupVersion{Group: s.Group, Version: s.Version}
	switch {
	case s.Group == "" && s.Version != "v1":
		errs = append(errs, field.Required(spec.Child("group"), "only v1 may have an empty group"))
	case s.Group != "":
		errs = append(errs, say(spec.Child("group"), s.Group, validation.IsDNS1123Subdomain(s.Group))...)
	}
	errs = append(errs, say(spec.Child("version"), s.Version, validation.IsDNS1035Label(s.Version))...)
	if p := s.GroupPriorityMinimum; p <= 0 || p > maxGroupPriority {
		errs = append(errs, field.Invalid(spec.Child("groupPriorityMinimum"), p, fmt.Sprintf("must be from 1 to %d", maxGroupPriority)))
	}
	if p := s.VersionPriority; p <= 0 || p > maxVersionPriority {
		errs = append(errs, field.Invalid(spec.Child("versionPriority"), p, fmt.Sprintf("must be from 1 to %d", maxVersionPriority)))
	}
	if s.Service == nil {
		if n := len(s.CABundle); n > 0 {
			errs = append(errs, field.Invalid(spec.Child("caBundle"), fmt.Sprintf("%d bytes", n), "local APIServices may not have a caBundle"))
		}
		if s.InsecureSkipTLSVerify {
			errs = append(errs, field.Invalid(spec.Child("insecureSkipTLSVerify"), true, "local APIServices may not have insecureSkipTLSVerify"))
		}
		return errs
	}
	at := spec.Child("service")
	if api.BuiltinVersion(gv) {
		errs = append(errs, field.Forbidden(at, gv.String()+" is the cluster's own, and no Service can serve it"))
	}
	errs = append(errs, required(at.Child("namespace"), s.Service.Namespace)...)
	errs = append(errs, required(at.Child("name"), s.Service.Name)...)
	if p := s.Service.Port; p != nil {
		errs = append(errs, say(at.Child("port"), *p, validation.IsValidPortNum(int(*p)))...)
	}
	if s.InsecureSkipTLSVerify && len(s.CABundle) > 0 {
		errs = append(errs, field.Invalid(spec.Child("insecureSkipTLSVerify"), true, "may not be true if caBundle is present"))
	}
	return errs
}

// apiServiceName is the rule for the name of an APIService: its version and its group.
func apiServiceName(a *apiregistrationv1.APIService) func(name string, prefix bool) []string {
	return func(name string, _ bool) []string {
		if bad := content.IsPathSegmentName(name); len(bad) > 0 {
			return bad
		}
		if want := api.APIServiceName(schema.GroupVersion{Group: a.Spec.Group, Version: a.Spec.Version}); name != want {
			return []string{fmt.Sprintf("must be `spec.version+\".\"+spec.group`: %q", want)}
		}
		return nil
	}
}

// APIServiceStatusUpdate checks the status of an APIService.
func APIServiceStatusUpdate(a, _ *apiregistrationv1.APIService) field.ErrorList {
	var errs field.ErrorList
	for i, c := range a.Status.Conditions {
		errs = append(errs, oneOf(field.NewPath("status", "conditions").Index(i).Child("status"), c.Status,
			apiregistrationv1.ConditionTrue, apiregistrationv1.ConditionFalse, apiregistrationv1.ConditionUnknown)...)
	}
	return errs
}
