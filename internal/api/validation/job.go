package validation

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxIndexed is the maximum parallelism of an Indexed job, because its status lists its indexes.
const maxIndexed = 100000

// Job checks a job.
func Job(job *batchv1.Job) field.ErrorList {
	path, s := field.NewPath("spec"), &job.Spec
	errs := count(path.Child("parallelism"), s.Parallelism)
	errs = append(errs, count(path.Child("completions"), s.Completions)...)
	errs = append(errs, count(path.Child("backoffLimit"), s.BackoffLimit)...)
	errs = append(errs, count(path.Child("ttlSecondsAfterFinished"), s.TTLSecondsAfterFinished)...)
	if s.ActiveDeadlineSeconds != nil {
		errs = append(errs, nonNegative(path.Child("activeDeadlineSeconds"), *s.ActiveDeadlineSeconds)...)
	}
	errs = append(errs, optional(path.Child("completionMode"), s.CompletionMode, batchv1.NonIndexedCompletion, batchv1.IndexedCompletion)...)
	replacement := []batchv1.PodReplacementPolicy{batchv1.Failed}
	if s.PodFailurePolicy == nil { // with a failure policy a pod is judged by how it ends, and only then replaced
		replacement = append(replacement, batchv1.TerminatingOrFailed)
	}
	errs = append(errs, optional(path.Child("podReplacementPolicy"), s.PodReplacementPolicy, replacement...)...)
	errs = append(errs, indexed(s, path)...)
	errs = append(errs, hostName(job)...)
	if s.ManagedBy != nil {
		errs = append(errs, utilvalidation.IsDomainPrefixedPath(path.Child("managedBy"), *s.ManagedBy)...)
	}
	if s.Selector == nil {
		errs = append(errs, field.Required(path.Child("selector"), ""))
	} else {
		errs = append(errs, selectors(s.Selector, path.Child("selector"))...)
	}
	template := path.Child("template")
	errs = append(errs, podTemplate(&s.Template, s.Selector, template)...)
	switch p := s.Template.Spec.RestartPolicy; p {
	case corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure:
	default:
		errs = append(errs, field.NotSupported(template.Child("spec", "restartPolicy"), p,
			[]corev1.RestartPolicy{corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}))
	}
	errs = append(errs, failurePolicy(s, path.Child("podFailurePolicy"))...)
	return append(errs, successPolicy(s, path.Child("successPolicy"))...)
}

// hostName checks that host names of an Indexed job's pods, which end in the index, are valid.
func hostName(job *batchv1.Job) field.ErrorList {
	s := &job.Spec
	if s.CompletionMode == nil || *s.CompletionMode != batchv1.IndexedCompletion || s.Completions == nil || *s.Completions == 0 {
		return nil
	}
	longest := fmt.Sprintf("%s-%d", job.Name, *s.Completions-1)
	if msgs := utilvalidation.IsDNS1123Label(longest); len(msgs) > 0 {
		return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), job.Name,
			fmt.Sprintf("an Indexed job's pods are named by it, and %q is no host name: %s", longest, msgs[0]))}
	}
	return nil
}

// indexed checks the fields that only Indexed jobs have.
func indexed(s *batchv1.JobSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	isIndexed := s.CompletionMode != nil && *s.CompletionMode == batchv1.IndexedCompletion
	if isIndexed {
		if s.Completions == nil {
			errs = append(errs, field.Required(path.Child("completions"), "when completion mode is Indexed"))
		}
		if s.Parallelism != nil && *s.Parallelism > maxIndexed {
			errs = append(errs, field.Invalid(path.Child("parallelism"), *s.Parallelism, "must be less than or equal to 100000 when completion mode is Indexed"))
		}
	}
	for _, f := range []struct {
		name string
		n    *int32
	}{{"backoffLimitPerIndex", s.BackoffLimitPerIndex}, {"maxFailedIndexes", s.MaxFailedIndexes}} {
		errs = append(errs, count(path.Child(f.name), f.n)...)
		if f.n != nil && !isIndexed {
			errs = append(errs, field.Invalid(path.Child(f.name), *f.n, "requires indexed completion mode"))
		}
	}
	if s.MaxFailedIndexes != nil && s.BackoffLimitPerIndex == nil {
		errs = append(errs, field.Required(path.Child("backoffLimitPerIndex"), "when maxFailedIndexes is specified"))
	}
	if s.SuccessPolicy != nil && !isIndexed {
		errs = append(errs, field.Invalid(path.Child("successPolicy"), field.OmitValueType{}, "requires indexed completion mode"))
	}
	return errs
}

// JobUpdate checks the change from old: what a job does must not change.
func JobUpdate(job, old *batchv1.Job) field.ErrorList {
	path := field.NewPath("spec")
	now, was := &job.Spec, &old.Spec
	var errs field.ErrorList
	elastic := now.CompletionMode != nil && *now.CompletionMode == batchv1.IndexedCompletion &&
		now.Completions != nil && now.Parallelism != nil && *now.Completions == *now.Parallelism
	if !elastic {
		errs = append(errs, apivalidation.ValidateImmutableField(now.Completions, was.Completions, path.Child("completions"))...)
	}
	errs = append(errs, apivalidation.ValidateImmutableField(now.Selector, was.Selector, path.Child("selector"))...)
	errs = append(errs, apivalidation.ValidateImmutableField(now.ManagedBy, was.ManagedBy, path.Child("managedBy"))...)
	errs = append(errs, apivalidation.ValidateImmutableField(now.CompletionMode, was.CompletionMode, path.Child("completionMode"))...)
	errs = append(errs, apivalidation.ValidateImmutableField(now.PodFailurePolicy, was.PodFailurePolicy, path.Child("podFailurePolicy"))...)
	errs = append(errs, apivalidation.ValidateImmutableField(now.SuccessPolicy, was.SuccessPolicy, path.Child("successPolicy"))...)
	errs = append(errs, apivalidation.ValidateImmutableField(now.BackoffLimitPerIndex, was.BackoffLimitPerIndex, path.Child("backoffLimitPerIndex"))...)
	waiting := was.Suspend != nil && *was.Suspend && old.Status.StartTime == nil
	if !waiting && !apiequality.Semantic.DeepEqual(now.Template, was.Template) {
		errs = append(errs, field.Invalid(path.Child("template"), "", "field is immutable once the job has begun"))
	}
	return errs
}

// JobStatusUpdate checks a status.
func JobStatusUpdate(job, _ *batchv1.Job) field.ErrorList {
	path, s := field.NewPath("status"), &job.Status
	return counts(path, map[string]int32{"active": s.Active, "succeeded": s.Succeeded, "failed": s.Failed})
}
