package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// PodSelector selects pods by their labels, in some namespaces. It stands for a term of pod affinity or anti-affinity,
// or the pods that a topology spread constraint counts.
type PodSelector struct {
	Labels labels.Selector
	// Namespaces are the namespaces selected by name.
	Namespaces []string
	// NamespaceLabels selects more namespaces by their labels; nil: none.
	NamespaceLabels labels.Selector
	// SkipsTerminating leaves out pods that are being deleted.
	SkipsTerminating bool
}

// NamespaceLabels maps the names of namespaces to their labels.
type NamespaceLabels map[string]map[string]string

// TermSelector returns what a term of pod affinity or anti-affinity selects. Without namespaces and namespaceSelector
// it selects in the owner's namespace. matchLabelKeys and mismatchLabelKeys use the owner's labels.
func TermSelector(t *corev1.PodAffinityTerm, owner *corev1.Pod) PodSelector {
	s := PodSelector{Labels: labelSelector(t.LabelSelector, owner.Labels, t.MatchLabelKeys, t.MismatchLabelKeys), Namespaces: t.Namespaces}
	if t.NamespaceSelector != nil {
		s.NamespaceLabels = labelSelector(t.NamespaceSelector, nil, nil, nil)
	} else if len(t.Namespaces) == 0 {
		s.Namespaces = []string{owner.Namespace}
	}
	return s
}

// SpreadSelector returns what a pod's topology spread constraint selects: pods in the pod's namespace that are not
// being deleted.
func SpreadSelector(t *corev1.TopologySpreadConstraint, owner *corev1.Pod) PodSelector {
	return PodSelector{Labels: labelSelector(t.LabelSelector, owner.Labels, t.MatchLabelKeys, nil),
		Namespaces: []string{owner.Namespace}, SkipsTerminating: true}
}

// Matches reports whether a pod is selected. The labels of namespaces are only read if s has NamespaceLabels.
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

// AllMatch reports whether all of the selectors select a pod.
func AllMatch(selectors []PodSelector, pod *corev1.Pod, namespaces NamespaceLabels) bool {
	for i := range selectors {
		if !selectors[i].Matches(pod, namespaces) {
			return false
		}
	}
	return true
}

// SharedLabel returns a label that every selected pod has; ok is false if there is none.
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

// labelSelector returns a label selector with the requirements that matchLabelKeys and mismatchLabelKeys add from the
// owner's labels. A key that the owner does not have adds none.
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

// RequiredAffinity returns the terms of required pod affinity. A node must meet all of them.
func RequiredAffinity(spec *corev1.PodSpec) []corev1.PodAffinityTerm {
	if spec.Affinity == nil || spec.Affinity.PodAffinity == nil {
		return nil
	}
	return spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// RequiredAntiAffinity returns the terms of required pod anti-affinity.
func RequiredAntiAffinity(spec *corev1.PodSpec) []corev1.PodAffinityTerm {
	if spec.Affinity == nil || spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	return spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}
