package validation

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// PodTemplate checks a PodTemplate object. It may be for any kind of pod.
func PodTemplate(t *corev1.PodTemplate) field.ErrorList {
	return podTemplate(&t.Template, nil, field.NewPath("template"))
}

// ReplicaSet checks a replica set.
func ReplicaSet(rs *appsv1.ReplicaSet) field.ErrorList {
	path := field.NewPath("spec")
	errs := count(path.Child("replicas"), rs.Spec.Replicas)
	errs = append(errs, nonNegative(path.Child("minReadySeconds"), rs.Spec.MinReadySeconds)...)
	errs = append(errs, workloadSelector(rs.Spec.Selector, path.Child("selector"))...)
	return append(errs, lastingTemplate(&rs.Spec.Template, rs.Spec.Selector, path.Child("template"))...)
}

// ReplicaSetUpdate checks the change from old: the selector must not change.
func ReplicaSetUpdate(rs, old *appsv1.ReplicaSet) field.ErrorList {
	return apivalidation.ValidateImmutableField(rs.Spec.Selector, old.Spec.Selector, field.NewPath("spec", "selector"))
}

// ReplicaSetStatusUpdate checks a status.
func ReplicaSetStatusUpdate(rs, _ *appsv1.ReplicaSet) field.ErrorList {
	path, s := field.NewPath("status"), &rs.Status
	return counts(path, map[string]int32{"replicas": s.Replicas, "fullyLabeledReplicas": s.FullyLabeledReplicas,
		"readyReplicas": s.ReadyReplicas, "availableReplicas": s.AvailableReplicas})
}

// ReplicationController checks a replication controller. Its selector and its template may change.
func ReplicationController(rc *corev1.ReplicationController) field.ErrorList {
	path := field.NewPath("spec")
	errs := count(path.Child("replicas"), rc.Spec.Replicas)
	errs = append(errs, nonNegative(path.Child("minReadySeconds"), rc.Spec.MinReadySeconds)...)
	if len(rc.Spec.Selector) == 0 {
		errs = append(errs, field.Required(path.Child("selector"), "and the template has no labels that could stand for it"))
	}
	if rc.Spec.Template == nil {
		return append(errs, field.Required(path.Child("template"), ""))
	}
	return append(errs, lastingTemplate(rc.Spec.Template, &metav1.LabelSelector{MatchLabels: rc.Spec.Selector}, path.Child("template"))...)
}

// ReplicationControllerStatusUpdate checks a status.
func ReplicationControllerStatusUpdate(rc, _ *corev1.ReplicationController) field.ErrorList {
	path, s := field.NewPath("status"), &rc.Status
	return counts(path, map[string]int32{"replicas": s.Replicas, "fullyLabeledReplicas": s.FullyLabeledReplicas,
		"readyReplicas": s.ReadyReplicas, "availableReplicas": s.AvailableReplicas})
}

// Deployment checks a deployment.
func Deployment(d *appsv1.Deployment) field.ErrorList {
	path := field.NewPath("spec")
	errs := count(path.Child("replicas"), d.Spec.Replicas)
	errs = append(errs, nonNegative(path.Child("minReadySeconds"), d.Spec.MinReadySeconds)...)
	errs = append(errs, workloadSelector(d.Spec.Selector, path.Child("selector"))...)
	errs = append(errs, lastingTemplate(&d.Spec.Template, d.Spec.Selector, path.Child("template"))...)
	errs = append(errs, deploymentStrategy(&d.Spec.Strategy, path.Child("strategy"))...)
	errs = append(errs, count(path.Child("revisionHistoryLimit"), d.Spec.RevisionHistoryLimit)...)
	errs = append(errs, count(path.Child("progressDeadlineSeconds"), d.Spec.ProgressDeadlineSeconds)...)
	if p := d.Spec.ProgressDeadlineSeconds; p != nil && *p <= d.Spec.MinReadySeconds {
		errs = append(errs, field.Invalid(path.Child("progressDeadlineSeconds"), *p, "must be greater than minReadySeconds"))
	}
	return errs
}

// DeploymentUpdate checks the change from old: the selector must not change.
func DeploymentUpdate(d, old *appsv1.Deployment) field.ErrorList {
	return apivalidation.ValidateImmutableField(d.Spec.Selector, old.Spec.Selector, field.NewPath("spec", "selector"))
}

// DeploymentStatusUpdate checks a status.
func DeploymentStatusUpdate(d, _ *appsv1.Deployment) field.ErrorList {
	path, s := field.NewPath("status"), &d.Status
	return counts(path, map[string]int32{"replicas": s.Replicas, "updatedReplicas": s.UpdatedReplicas,
		"readyReplicas": s.ReadyReplicas, "availableReplicas": s.AvailableReplicas, "unavailableReplicas": s.UnavailableReplicas})
}

func deploymentStrategy(s *appsv1.DeploymentStrategy, path *field.Path) field.ErrorList {
	errs := oneOf(path.Child("type"), s.Type, appsv1.RecreateDeploymentStrategyType, appsv1.RollingUpdateDeploymentStrategyType)
	rolling := path.Child("rollingUpdate")
	switch {
	case s.Type == appsv1.RecreateDeploymentStrategyType && s.RollingUpdate != nil:
		errs = append(errs, field.Forbidden(rolling, "may not be specified when strategy `type` is '"+string(s.Type)+"'"))
	case s.Type == appsv1.RollingUpdateDeploymentStrategyType && s.RollingUpdate == nil:
		errs = append(errs, field.Required(rolling, "this should be defaulted and never be nil"))
	case s.Type == appsv1.RollingUpdateDeploymentStrategyType:
		errs = append(errs, part(s.RollingUpdate.MaxUnavailable, true, rolling.Child("maxUnavailable"))...)
		errs = append(errs, part(s.RollingUpdate.MaxSurge, false, rolling.Child("maxSurge"))...)
		if isZero(s.RollingUpdate.MaxUnavailable) && isZero(s.RollingUpdate.MaxSurge) {
			errs = append(errs, field.Invalid(rolling.Child("maxUnavailable"), s.RollingUpdate.MaxUnavailable, "may not be 0 when `maxSurge` is 0"))
		}
	}
	return errs
}

// DaemonSet checks a daemon set.
func DaemonSet(ds *appsv1.DaemonSet) field.ErrorList {
	path := field.NewPath("spec")
	errs := nonNegative(path.Child("minReadySeconds"), ds.Spec.MinReadySeconds)
	errs = append(errs, workloadSelector(ds.Spec.Selector, path.Child("selector"))...)
	errs = append(errs, lastingTemplate(&ds.Spec.Template, ds.Spec.Selector, path.Child("template"))...)
	errs = append(errs, count(path.Child("revisionHistoryLimit"), ds.Spec.RevisionHistoryLimit)...)
	s, at := &ds.Spec.UpdateStrategy, path.Child("updateStrategy")
	errs = append(errs, oneOf(at.Child("type"), s.Type, appsv1.RollingUpdateDaemonSetStrategyType, appsv1.OnDeleteDaemonSetStrategyType)...)
	if s.Type != appsv1.RollingUpdateDaemonSetStrategyType {
		return errs
	}
	rolling := at.Child("rollingUpdate")
	if s.RollingUpdate == nil {
		return append(errs, field.Required(rolling, ""))
	}
	errs = append(errs, part(s.RollingUpdate.MaxUnavailable, true, rolling.Child("maxUnavailable"))...)
	errs = append(errs, part(s.RollingUpdate.MaxSurge, true, rolling.Child("maxSurge"))...)
	switch unavailable, surge := isZero(s.RollingUpdate.MaxUnavailable), isZero(s.RollingUpdate.MaxSurge); {
	case unavailable && surge:
		errs = append(errs, field.Required(rolling.Child("maxUnavailable"), "cannot be 0 when maxSurge is 0"))
	case !unavailable && !surge:
		errs = append(errs, field.Invalid(rolling.Child("maxSurge"), s.RollingUpdate.MaxSurge, "may not be set when maxUnavailable is non-zero"))
	}
	return errs
}

// DaemonSetUpdate checks the change from old: the selector must not change.
func DaemonSetUpdate(ds, old *appsv1.DaemonSet) field.ErrorList {
	return apivalidation.ValidateImmutableField(ds.Spec.Selector, old.Spec.Selector, field.NewPath("spec", "selector"))
}

// DaemonSetStatusUpdate checks a status.
func DaemonSetStatusUpdate(ds, _ *appsv1.DaemonSet) field.ErrorList {
	path, s := field.NewPath("status"), &ds.Status
	return counts(path, map[string]int32{"currentNumberScheduled": s.CurrentNumberScheduled, "numberMisscheduled": s.NumberMisscheduled,
		"desiredNumberScheduled": s.DesiredNumberScheduled, "numberReady": s.NumberReady, "updatedNumberScheduled": s.UpdatedNumberScheduled,
		"numberAvailable": s.NumberAvailable, "numberUnavailable": s.NumberUnavailable})
}

// ControllerRevision checks a revision.
func ControllerRevision(r *appsv1.ControllerRevision) field.ErrorList {
	errs := nonNegative(field.NewPath("revision"), r.Revision)
	if len(r.Data.Raw) == 0 && r.Data.Object == nil {
		errs = append(errs, field.Required(field.NewPath("data"), "data is mandatory"))
	}
	return errs
}

// ControllerRevisionUpdate checks the change from old: the data must not change.
func ControllerRevisionUpdate(r, old *appsv1.ControllerRevision) field.ErrorList {
	return apivalidation.ValidateImmutableField(string(r.Data.Raw), string(old.Data.Raw), field.NewPath("data"))
}

func count(path *field.Path, n *int32) field.ErrorList {
	if n == nil {
		return nil
	}
	return nonNegative(path, *n)
}

func counts(path *field.Path, numbers map[string]int32) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		errs = append(errs, nonNegative(path.Child(name), numbers[name])...)
	}
	return errs
}

// part checks a number or a percentage of pods.
func part(v *intstr.IntOrString, upToAll bool, path *field.Path) field.ErrorList {
	if v == nil {
		return nil
	}
	if v.Type == intstr.Int {
		return nonNegative(path, v.IntVal)
	}
	errs := say(path, *v, validation.IsValidPercent(v.StrVal))
	if n, err := strconv.Atoi(strings.TrimSuffix(v.StrVal, "%")); len(errs) == 0 && upToAll && (err != nil || n > 100) {
		errs = append(errs, field.Invalid(path, *v, "must not be greater than 100%"))
	}
	return errs
}

func isZero(v *intstr.IntOrString) bool {
	if v == nil {
		return true
	}
	if v.Type == intstr.Int {
		return v.IntVal == 0
	}
	return strings.Trim(v.StrVal, "0") == "%"
}

// workloadSelector checks that there is a selector and that it does not select every pod.
func workloadSelector(s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	if s == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	errs := selectors(s, path)
	if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		errs = append(errs, field.Invalid(path, s, "empty selector is invalid: it would select every pod of the namespace"))
	}
	return errs
}

// podTemplate checks a template. selector must select its labels.
func podTemplate(t *corev1.PodTemplateSpec, selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	meta := path.Child("metadata")
	errs := metav1validation.ValidateLabels(t.Labels, meta.Child("labels"))
	errs = append(errs, apivalidation.ValidateAnnotations(t.Annotations, meta.Child("annotations"))...)
	if s, err := metav1.LabelSelectorAsSelector(selector); selector != nil && err == nil && !s.Empty() && !s.Matches(labels.Set(t.Labels)) {
		errs = append(errs, field.Invalid(meta.Child("labels"), t.Labels, "`selector` does not match template `labels`"))
	}
	errs = append(errs, PodSpec(&t.Spec, &t.ObjectMeta, path.Child("spec"))...)
	if len(t.Spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(path.Child("spec", "ephemeralContainers"), "ephemeral containers not allowed in pod template"))
	}
	refused, _ := NotServed(&t.Spec, path.Child("spec"))
	return append(errs, refused...)
}

// lastingTemplate is podTemplate for pods that run until they are deleted.
func lastingTemplate(t *corev1.PodTemplateSpec, selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	errs := podTemplate(t, selector, path)
	at := path.Child("spec")
	if p := t.Spec.RestartPolicy; p != corev1.RestartPolicyAlways && p != "" {
		errs = append(errs, field.NotSupported(at.Child("restartPolicy"), p, []corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	if t.Spec.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(at.Child("activeDeadlineSeconds"), "activeDeadlineSeconds is not supported where pods are replaced: in a ReplicaSet, ReplicationController, Deployment or DaemonSet"))
	}
	return errs
}
