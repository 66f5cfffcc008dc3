package validation

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// scheduling checks all fields that affect which node a pod gets.
func scheduling(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabels(spec.NodeSelector, path.Child("nodeSelector"))
	for i := range spec.Tolerations {
		errs = append(errs, toleration(&spec.Tolerations[i], path.Child("tolerations").Index(i))...)
	}
	if a := spec.Affinity; a != nil {
		errs = append(errs, affinity(a, path.Child("affinity"))...)
	}
	for i := range spec.TopologySpreadConstraints {
		c, at := &spec.TopologySpreadConstraints[i], path.Child("topologySpreadConstraints").Index(i)
		errs = append(errs, spread(c, at)...)
		for _, before := range spec.TopologySpreadConstraints[:i] {
			if before.TopologyKey == c.TopologyKey && before.WhenUnsatisfiable == c.WhenUnsatisfiable {
				errs = append(errs, field.Duplicate(at, c.TopologyKey+", "+string(c.WhenUnsatisfiable)))
				break
			}
		}
	}
	for i, gate := range spec.SchedulingGates {
		at := path.Child("schedulingGates").Index(i)
		errs = append(errs, say(at.Child("name"), gate.Name, validation.IsQualifiedName(gate.Name))...)
		if slices.Contains(spec.SchedulingGates[:i], gate) {
			errs = append(errs, field.Duplicate(at, gate.Name))
		}
	}
	return errs
}

func toleration(t *corev1.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if t.Key != "" {
		errs = append(errs, metav1validation.ValidateLabelName(t.Key, path.Child("key"))...)
	} else if t.Operator != corev1.TolerationOpExists {
		errs = append(errs, field.Invalid(path.Child("operator"), t.Operator,
			"operator must be Exists when `key` is empty, which means \"match all values and all keys\""))
	}
	switch t.Operator {
	case corev1.TolerationOpEqual, "":
		errs = append(errs, say(path.Child("value"), t.Value, validation.IsValidLabelValue(t.Value))...)
	case corev1.TolerationOpExists:
		if t.Value != "" {
			errs = append(errs, field.Invalid(path.Child("value"), t.Value, "value must be empty when `operator` is 'Exists'"))
		}
	default:
		errs = append(errs, field.NotSupported(path.Child("operator"), t.Operator,
			[]corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}))
	}
	if t.Effect != "" {
		errs = append(errs, taintEffect(t.Effect, path.Child("effect"))...)
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		errs = append(errs, field.Invalid(path.Child("effect"), t.Effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
	}
	return errs
}

func taintEffect(effect corev1.TaintEffect, path *field.Path) field.ErrorList {
	return oneOf(path, effect, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)
}

const (
	requiredTerms  = "requiredDuringSchedulingIgnoredDuringExecution"
	preferredTerms = "preferredDuringSchedulingIgnoredDuringExecution"
)

func affinity(a *corev1.Affinity, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := a.NodeAffinity; n != nil {
		at := path.Child("nodeAffinity")
		if must := n.RequiredDuringSchedulingIgnoredDuringExecution; must != nil {
			terms := at.Child(requiredTerms, "nodeSelectorTerms")
			if len(must.NodeSelectorTerms) == 0 {
				errs = append(errs, field.Required(terms, "must have at least one node selector term"))
			}
			for i := range must.NodeSelectorTerms {
				errs = append(errs, nodeTerm(&must.NodeSelectorTerms[i], terms.Index(i))...)
			}
		}
		for i := range n.PreferredDuringSchedulingIgnoredDuringExecution {
			p, term := &n.PreferredDuringSchedulingIgnoredDuringExecution[i], at.Child(preferredTerms).Index(i)
			errs = append(errs, weight(p.Weight, term)...)
			errs = append(errs, nodeTerm(&p.Preference, term.Child("preference"))...)
		}
	}
	if p := a.PodAffinity; p != nil {
		errs = append(errs, podTerms(p.RequiredDuringSchedulingIgnoredDuringExecution,
			p.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("podAffinity"))...)
	}
	if p := a.PodAntiAffinity; p != nil {
		errs = append(errs, podTerms(p.RequiredDuringSchedulingIgnoredDuringExecution,
			p.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("podAntiAffinity"))...)
	}
	return errs
}

func weight(w int32, path *field.Path) field.ErrorList {
	return say(path.Child("weight"), w, validation.IsInRange(int(w), 1, 100))
}

func nodeTerm(term *corev1.NodeSelectorTerm, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range term.MatchExpressions {
		r, at := &term.MatchExpressions[i], path.Child("matchExpressions").Index(i)
		errs = append(errs, metav1validation.ValidateLabelName(r.Key, at.Child("key"))...)
		errs = append(errs, nodeRequirement(r, at)...)
	}
	for i := range term.MatchFields {
		r, at := &term.MatchFields[i], path.Child("matchFields").Index(i)
		errs = append(errs, oneOf(at.Child("key"), r.Key, "metadata.name")...)
		errs = append(errs, oneOf(at.Child("operator"), r.Operator, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn)...)
		if len(r.Values) != 1 {
			errs = append(errs, field.Required(at.Child("values"), "must have exactly one value"))
		}
	}
	return errs
}

func nodeRequirement(r *corev1.NodeSelectorRequirement, path *field.Path) field.ErrorList {
	values := path.Child("values")
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(r.Values) == 0 {
			return field.ErrorList{field.Required(values, "must be specified when `operator` is 'In' or 'NotIn'")}
		}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if len(r.Values) > 0 {
			return field.ErrorList{field.Forbidden(values, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")}
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if len(r.Values) != 1 {
			return field.ErrorList{field.Required(values, "must be specified single value when `operator` is 'Lt' or 'Gt'")}
		}
		if _, err := strconv.ParseInt(r.Values[0], 10, 64); err != nil {
			return field.ErrorList{field.Invalid(values.Index(0), r.Values[0], "must be an integer when `operator` is 'Lt' or 'Gt'")}
		}
	default:
		return field.ErrorList{field.Invalid(path.Child("operator"), r.Operator, "not a valid selector operator")}
	}
	return nil
}

func podTerms(must []corev1.PodAffinityTerm, should []corev1.WeightedPodAffinityTerm, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range must {
		errs = append(errs, podTerm(&must[i], path.Child(requiredTerms).Index(i))...)
	}
	for i := range should {
		at := path.Child(preferredTerms).Index(i)
		errs = append(errs, weight(should[i].Weight, at)...)
		errs = append(errs, podTerm(&should[i].PodAffinityTerm, at.Child("podAffinityTerm"))...)
	}
	return errs
}

func podTerm(term *corev1.PodAffinityTerm, path *field.Path) field.ErrorList {
	errs := selectors(term.LabelSelector, path.Child("labelSelector"))
	errs = append(errs, selectors(term.NamespaceSelector, path.Child("namespaceSelector"))...)
	for i, ns := range term.Namespaces {
		errs = append(errs, say(path.Child("namespaces").Index(i), ns, validation.IsDNS1123Label(ns))...)
	}
	if term.TopologyKey == "" {
		return append(errs, field.Required(path.Child("topologyKey"), "can not be empty"))
	}
	return append(errs, metav1validation.ValidateLabelName(term.TopologyKey, path.Child("topologyKey"))...)
}

func spread(c *corev1.TopologySpreadConstraint, path *field.Path) field.ErrorList {
	errs := selectors(c.LabelSelector, path.Child("labelSelector"))
	if c.MaxSkew <= 0 {
		errs = append(errs, field.Invalid(path.Child("maxSkew"), c.MaxSkew, "must be greater than zero"))
	}
	if c.TopologyKey == "" {
		errs = append(errs, field.Required(path.Child("topologyKey"), "can not be empty"))
	} else {
		errs = append(errs, metav1validation.ValidateLabelName(c.TopologyKey, path.Child("topologyKey"))...)
	}
	errs = append(errs, oneOf(path.Child("whenUnsatisfiable"), c.WhenUnsatisfiable, corev1.DoNotSchedule, corev1.ScheduleAnyway)...)
	if m := c.MinDomains; m != nil {
		if *m <= 0 {
			errs = append(errs, field.Invalid(path.Child("minDomains"), *m, "must be greater than zero"))
		}
		if c.WhenUnsatisfiable != corev1.DoNotSchedule {
			errs = append(errs, field.Invalid(path.Child("minDomains"), *m, "can only use minDomains if whenUnsatisfiable=DoNotSchedule"))
		}
	}
	for i, key := range c.MatchLabelKeys {
		at := path.Child("matchLabelKeys").Index(i)
		errs = append(errs, metav1validation.ValidateLabelName(key, at)...)
		if slices.Contains(c.MatchLabelKeys[:i], key) {
			errs = append(errs, field.Duplicate(at, key))
		}
	}
	return errs
}
