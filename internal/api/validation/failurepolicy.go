package validation

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The maximum sizes in a job's failure policy.
const (
	maxFailureRules      = 20
	maxFailureConditions = 20
	maxFailureExitCodes  = 255
)

// failurePolicy checks a job's rules for failed pods.
func failurePolicy(s *batchv1.JobSpec, path *field.Path) field.ErrorList {
	if s.PodFailurePolicy == nil {
		return nil
	}
	var errs field.ErrorList
	if s.Template.Spec.RestartPolicy != corev1.RestartPolicyNever {
		errs = append(errs, field.Invalid(path.Root().Child("template", "spec", "restartPolicy"), s.Template.Spec.RestartPolicy,
			"only \"Never\" is supported when podFailurePolicy is specified"))
	}
	if n := len(s.PodFailurePolicy.Rules); n > maxFailureRules {
		errs = append(errs, field.TooMany(path.Child("rules"), n, maxFailureRules))
	}
	for i := range s.PodFailurePolicy.Rules {
		errs = append(errs, failureRule(s, &s.PodFailurePolicy.Rules[i], path.Child("rules").Index(i))...)
	}
	return errs
}

func failureRule(s *batchv1.JobSpec, rule *batchv1.PodFailurePolicyRule, path *field.Path) field.ErrorList {
	errs := oneOf(path.Child("action"), rule.Action, batchv1.PodFailurePolicyActionFailJob,
		batchv1.PodFailurePolicyActionFailIndex, batchv1.PodFailurePolicyActionIgnore, batchv1.PodFailurePolicyActionCount)
	if rule.Action == batchv1.PodFailurePolicyActionFailIndex && s.BackoffLimitPerIndex == nil {
		errs = append(errs, field.Invalid(path.Child("action"), rule.Action, "requires the backoffLimitPerIndex to be set"))
	}
	switch byCode, byCondition := rule.OnExitCodes != nil, len(rule.OnPodConditions) > 0; {
	case byCode && byCondition:
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, "specifying both OnExitCodes and OnPodConditions is not supported"))
	case !byCode && !byCondition:
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, "specifying one of OnExitCodes and OnPodConditions is required"))
	}
	if rule.OnExitCodes != nil {
		errs = append(errs, failureExitCodes(rule.OnExitCodes, &s.Template.Spec, path.Child("onExitCodes"))...)
	}
	at := path.Child("onPodConditions")
	if n := len(rule.OnPodConditions); n > maxFailureConditions {
		errs = append(errs, field.TooMany(at, n, maxFailureConditions))
	}
	for i, c := range rule.OnPodConditions {
		errs = append(errs, say(at.Index(i).Child("type"), c.Type, utilvalidation.IsQualifiedName(string(c.Type)))...)
		errs = append(errs, oneOf(at.Index(i).Child("status"), c.Status, corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown)...)
	}
	return errs
}

// failureExitCodes checks a rule about exit codes: they must be sorted, without duplicates, and the container must be
// in the template, if one is named.
func failureExitCodes(codes *batchv1.PodFailurePolicyOnExitCodesRequirement, spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	errs := oneOf(path.Child("operator"), codes.Operator, batchv1.PodFailurePolicyOnExitCodesOpIn, batchv1.PodFailurePolicyOnExitCodesOpNotIn)
	if name := codes.ContainerName; name != nil && !slices.ContainsFunc(slices.Concat(spec.InitContainers, spec.Containers),
		func(c corev1.Container) bool { return c.Name == *name }) {
		errs = append(errs, field.Invalid(path.Child("containerName"), *name, "must be one of the container or initContainer names in the pod template"))
	}
	at := path.Child("values")
	switch n := len(codes.Values); {
	case n == 0:
		errs = append(errs, field.Invalid(at, codes.Values, "at least one value is required"))
	case n > maxFailureExitCodes:
		errs = append(errs, field.TooMany(at, n, maxFailureExitCodes))
	case !slices.IsSorted(codes.Values):
		errs = append(errs, field.Invalid(at, codes.Values, "must be ordered"))
	}
	seen := sets.New[int32]()
	for i, code := range codes.Values {
		if code == 0 && codes.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn {
			errs = append(errs, field.Invalid(at.Index(i), code, "must not be 0 for the In operator"))
		}
		if seen.Has(code) {
			errs = append(errs, field.Duplicate(at.Index(i), code))
		}
		seen.Insert(code)
	}
	return errs
}
