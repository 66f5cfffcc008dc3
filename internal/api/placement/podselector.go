package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// PodSelector chooses pods by their labels, in some namespaces: a term of pod affinity or anti-affinity, or the pods
// that a topology spread constraint counts.
type PodSelector struct {
	Labels labels.Selector
	// Namespaces are those that are chosen by name.
	Namespaces []string
	// NamespaceLabels chooses more namespaces by their labels; nil: none.
	NamespaceLabels labels.Selector
	// SkipsTerminating leaves out pods that are being deleted.
	SkipsTerminating bool
}

// NamespaceLabels are the labels of namespaces, by name.
type NamespaceLabels map[string]map[string]string

// TermSelector is what a term of pod affinity or anti-affinity chooses. Without namespaces and a namespaceSelector it
// chooses in the owner's; matchLabelKeys and mismatchLabelKeys take the owner's labels.
func TermSelector(t *corev1.PodAffinityTerm, owner *corev1.Pod) PodSelector {
	s := PodSelector{Labels: labelSelector(t.LabelSelector, owner.Labels, t.MatchLabelKeys, t.MismatchLabelKeys), Namespaces: t.Namespaces}
	if t.NamespaceSelector != nil {
		s.NamespaceLabels = labelSelector(t.NamespaceSelector, nil, nil, nil)
	} else if len(t.Namespaces) == 0 {
		s.Namespaces = []string{owner.Namespace}
	}
	return s
}

// SpreadSelector is what a topology spread constraint of a pod chooses: in the pod's namespace, pods that are not being
// deleted.
func SpreadSelector(t *corev1.TopologySpreadConstraint, owner *corev1.Pod) PodSelector {
	return PodSelector{Labels: labelSelector(t.LabelSelector, owner.Labels, t.MatchLabelKeys, nil),
		Namespaces: []string{owner.Namespace}, SkipsTerminating: true}
}

// Matches says whether it chooses a pod. Only a selector with NamespaceLabels reads the labels of namespaces.
func (s *PodSelector) Matches(pod *corev1.Pod, namespaces NamespaceLabels) bool {
	if s.SkipsTerminating && pod.DeletionTimestamp != nil {
		return false
	}
	if !slices.Contains(s.Namespaces, pod.Namespace) &&
		(s.NamespaceLabels == nil || !s.NamespaceLabels.Matches(labels.Set(namespaces[pod.Namespace]))) {
		return false
	}
	return s.Labels.Matches(labels.Set(pod.Labels))
}

// AllMatch says whether every one of the selectors chooses a pod.
func AllMatch(selectors []PodSelector, pod *corev1.Pod, namespaces NamespaceLabels) bool {
	for i := range selectors {
		if !selectors[i].Matches(pod, namespaces) {
			return false
		}
	}
	return true
}

// SharedLabel is a label that every pod which it chooses has; ok is false if there is none.
func (s *PodSelector) SharedLabel() (key, value string, ok bool) {
	reqs, _ := s.Labels.Requirements()
	for i := range reqs {
		switch reqs[i].Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			if values := reqs[i].ValuesUnsorted(); len(values) == 1 {
				return reqs[i].Key(), values[0], true
			}
		}
	}
	return "", "", false
}

// labelSelector is a label selector with the requirements that matchLabelKeys and mismatchLabelKeys add from the
// owner's labels; a key that the owner does not have adds none.
func labelSelector(ls *metav1.LabelSelector, own map[string]string, match, mismatch []string) labels.Selector {
	sel, err := metav1.LabelSelectorAsSelector(ls)
	if err != nil {
		return labels.Nothing()
	}
	if ls == nil || len(match)+len(mismatch) == 0 {
		return sel
	}
	add := func(keys []string, op selection.Operator) {
		for _, key := range keys {
			if value, ok := own[key]; ok {
				if r, err := labels.NewRequirement(key, op, []string{value}); err == nil {
					sel = sel.Add(*r)
				}
			}
		}
	}
	add(match, selection.In)
	add(mismatch, selection.NotIn)
	return sel
}

// RequiredAffinity are the terms of required pod affinity: a node must meet them all.
func RequiredAffinity(spec *corev1.PodSpec) []corev1.PodAffinityTerm {
	if spec.Affinity == nil || spec.Affinity.PodAffinity == nil {
		return nil
	}
	return spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// RequiredAntiAffinity are the terms of required pod anti-affinity.
func RequiredAntiAffinity(spec *corev1.PodSpec) []corev1.PodAffinityTerm {
	if spec.Affinity == nil || spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	return spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}
