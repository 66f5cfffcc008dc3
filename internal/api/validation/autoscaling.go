package validation

import (
	"fmt"
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
)

// The largest numbers of a behavior, in seconds, and the limits of our own sync period.
const (
	maxPolicyPeriod        = 1800
	maxStabilizationWindow = 3600
	minSyncPeriod          = time.Second
	maxSyncPeriod          = time.Hour
)

// referenceRule says what may be missing in a reference to another object.
type referenceRule struct {
	noGroup    bool // an object of the core group
	anyVersion bool // what was stored before this was checked
}

// HorizontalPodAutoscaler checks a new autoscaler.
func HorizontalPodAutoscaler(h *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
	return autoscaler(h, referenceRule{noGroup: h.Spec.ScaleTargetRef.Kind == api.ReplicationControllers.Kind}, referenceRule{noGroup: true})
}

// HorizontalPodAutoscalerUpdate checks an autoscaler that replaces old. A target that old has already is taken as it is.
func HorizontalPodAutoscalerUpdate(h, old *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
	target, described := referenceRule{}, referenceRule{noGroup: true}
	now, before := h.Spec.ScaleTargetRef, old.Spec.ScaleTargetRef
	if now.Kind == before.Kind && now.APIVersion == before.APIVersion {
		target.anyVersion = true
	} else {
		target.noGroup = now.Kind == api.ReplicationControllers.Kind
	}
	for i := range old.Spec.Metrics {
		if o := old.Spec.Metrics[i].Object; o != nil && old.Spec.Metrics[i].Type == autoscalingv2.ObjectMetricSourceType {
			described.anyVersion = described.anyVersion || versionMistake(&o.DescribedObject, described) != ""
		}
	}
	return autoscaler(h, target, described)
}

// HorizontalPodAutoscalerStatusUpdate checks a status.
func HorizontalPodAutoscalerStatusUpdate(h, _ *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
	path, s := field.NewPath("status"), &h.Status
	var errs field.ErrorList
	for i, c := range s.Conditions {
		if c.ObservedGeneration != nil {
			errs = append(errs, nonNegative(path.Child("conditions").Index(i).Child("observedGeneration"), *c.ObservedGeneration)...)
		}
	}
	errs = append(errs, nonNegative(path.Child("currentReplicas"), s.CurrentReplicas)...)
	return append(errs, nonNegative(path.Child("desiredReplicas"), s.DesiredReplicas)...)
}

func autoscaler(h *autoscalingv2.HorizontalPodAutoscaler, target, described referenceRule) field.ErrorList {
	s := &h.Spec
	errs := autoscalerAnnotations(h)
	if s.MinReplicas != nil && *s.MinReplicas < 0 {
		errs = append(errs, field.Invalid(spec.Child("minReplicas"), *s.MinReplicas, "must be greater than or equal to 0"))
	}
	switch at := spec.Child("maxReplicas"); {
	case s.MaxReplicas == 0:
		errs = append(errs, field.Required(at, "must be set and greater than 0"))
	case s.MaxReplicas < 0:
		errs = append(errs, field.Invalid(at, s.MaxReplicas, "must be greater than or equal to 1"))
	}
	if s.MinReplicas != nil && s.MaxReplicas < *s.MinReplicas {
		errs = append(errs, field.Invalid(spec.Child("maxReplicas"), s.MaxReplicas, "must be greater than or equal to `minReplicas`"))
	}
	errs = append(errs, crossReference(&s.ScaleTargetRef, spec.Child("scaleTargetRef"), target)...)
	fromZero := false
	for i := range s.Metrics {
		m := &s.Metrics[i]
		errs = append(errs, metric(m, spec.Child("metrics").Index(i), described)...)
		fromZero = fromZero || m.Type == autoscalingv2.ObjectMetricSourceType || m.Type == autoscalingv2.ExternalMetricSourceType
	}
	if s.MinReplicas != nil && *s.MinReplicas == 0 && !fromZero {
		errs = append(errs, field.Forbidden(spec.Child("metrics"), "must specify at least one Object or External metric to support scaling to zero replicas"))
	}
	if b := s.Behavior; b != nil {
		errs = append(errs, scalingRules(b.ScaleUp, spec.Child("behavior", "scaleUp"))...)
		errs = append(errs, scalingRules(b.ScaleDown, spec.Child("behavior", "scaleDown"))...)
	}
	return errs
}

// autoscalerAnnotations checks the annotations of our own.
func autoscalerAnnotations(h *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
	path := field.NewPath("metadata", "annotations")
	var errs field.ErrorList
	if basis, ok := h.Annotations[api.UtilizationBasisAnnotation]; ok {
		errs = append(errs, oneOf(path.Key(api.UtilizationBasisAnnotation), basis, api.BasisCapacity, api.BasisRequestsOrCapacity)...)
	}
	if text, ok := h.Annotations[api.SyncPeriodAnnotation]; ok {
		if d, err := time.ParseDuration(text); err != nil || d < minSyncPeriod || d > maxSyncPeriod {
			errs = append(errs, field.Invalid(path.Key(api.SyncPeriodAnnotation), text,
				fmt.Sprintf("must be a duration from %s to %s, such as 10s", minSyncPeriod, maxSyncPeriod)))
		}
	}
	return errs
}

func versionMistake(ref *autoscalingv2.CrossVersionObjectReference, rule referenceRule) string {
	if rule.anyVersion {
		return ""
	}
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	switch {
	case err != nil:
		return err.Error()
	case gv.Group == "" && !rule.noGroup:
		return "apiVersion must specify API group"
	}
	return ""
}

func crossReference(ref *autoscalingv2.CrossVersionObjectReference, path *field.Path, rule referenceRule) field.ErrorList {
	errs := pathSegment(path.Child("kind"), ref.Kind, "")
	errs = append(errs, pathSegment(path.Child("name"), ref.Name, "")...)
	if wrong := versionMistake(ref, rule); wrong != "" {
		errs = append(errs, field.Invalid(path.Child("apiVersion"), ref.APIVersion, wrong))
	}
	return errs
}

// pathSegment checks a name that is a part of a path; missing is what is said if there is none.
func pathSegment(path *field.Path, name, missing string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, missing)}
	}
	return say(path, name, content.IsPathSegmentName(name))
}

func scalingRules(r *autoscalingv2.HPAScalingRules, path *field.Path) field.ErrorList {
	if r == nil {
		return nil
	}
	var errs field.ErrorList
	if w := r.StabilizationWindowSeconds; w != nil {
		errs = append(errs, seconds(path.Child("stabilizationWindowSeconds"), *w, 0, maxStabilizationWindow)...)
	}
	selects := []autoscalingv2.ScalingPolicySelect{autoscalingv2.DisabledPolicySelect, autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect}
	if p := r.SelectPolicy; p != nil && !slices.Contains(selects, *p) {
		errs = append(errs, field.NotSupported(path.Child("selectPolicy"), *p, selects))
	}
	if len(r.Policies) == 0 {
		errs = append(errs, field.Required(path.Child("policies"), "must specify at least one Policy"))
	}
	types := []autoscalingv2.HPAScalingPolicyType{autoscalingv2.PercentScalingPolicy, autoscalingv2.PodsScalingPolicy}
	for i, p := range r.Policies {
		at := path.Child("policies").Index(i)
		if !slices.Contains(types, p.Type) {
			errs = append(errs, field.NotSupported(at.Child("type"), p.Type, types))
		}
		if p.Value <= 0 {
			errs = append(errs, field.Invalid(at.Child("value"), p.Value, "must be greater than zero"))
		}
		errs = append(errs, seconds(at.Child("periodSeconds"), p.PeriodSeconds, 1, maxPolicyPeriod)...)
	}
	if r.Tolerance != nil && r.Tolerance.Sign() < 0 {
		errs = append(errs, field.Invalid(path.Child("tolerance"), r.Tolerance.String(), "must be greater than or equal to 0"))
	}
	return errs
}

func seconds(path *field.Path, n, least, most int32) field.ErrorList {
	switch {
	case n < least && least == 0:
		return field.ErrorList{field.Invalid(path, n, "must be greater than or equal to zero")}
	case n < least:
		return field.ErrorList{field.Invalid(path, n, "must be greater than zero")}
	case n > most:
		return field.ErrorList{field.Invalid(path, n, fmt.Sprintf("must be less than or equal to %d", most))}
	}
	return nil
}
