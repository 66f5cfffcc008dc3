package placement

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Selects reports whether the node matches nodeSelector and required node affinity.
func Selects(spec *corev1.PodSpec, node *corev1.Node) bool {
	for k, v := range spec.NodeSelector {
		if have, ok := node.Labels[k]; !ok || have != v {
			return false
		}
	}
	terms, required := RequiredTerms(spec)
	for i := range terms {
		if MatchTerm(&terms[i], node) {
			return true
		}
	}
	return !required
}

// RequiredTerms returns the terms of required node affinity; a node must match one of them. required is false if there
// is no such affinity. (An affinity without terms is matched by no node.)
func RequiredTerms(spec *corev1.PodSpec) (terms []corev1.NodeSelectorTerm, required bool) {
	a := spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil, false
	}
	return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms, true
}

// MatchTerm reports whether the node matches a term: all parts of the term must hold. An empty term matches nothing.
func MatchTerm(t *corev1.NodeSelectorTerm, node *corev1.Node) bool {
	if len(t.MatchExpressions)+len(t.MatchFields) == 0 {
		return false
	}
	for i := range t.MatchExpressions {
		if !matchLabel(&t.MatchExpressions[i], node.Labels) {
			return false
		}
	}
	for i := range t.MatchFields {
		if !matchName(&t.MatchFields[i], node.Name) {
			return false
		}
	}
	return true
}

// matchName matches the only field of a node that a term may use.
func matchName(r *corev1.NodeSelectorRequirement, name string) bool {
	if r.Key != metav1.ObjectNameField || len(r.Values) != 1 {
		return false
	}
	switch r.Operator {
	case corev1.NodeSelectorOpIn:
		return r.Values[0] == name
	case corev1.NodeSelectorOpNotIn:
		return r.Values[0] != name
	}
	return false
}

func matchLabel(r *corev1.NodeSelectorRequirement, labels map[string]string) bool {
	have, ok := labels[r.Key]
	switch r.Operator {
	case corev1.NodeSelectorOpExists:
		return ok
	case corev1.NodeSelectorOpDoesNotExist:
		return !ok
	case corev1.NodeSelectorOpIn:
		return ok && slices.Contains(r.Values, have)
	case corev1.NodeSelectorOpNotIn:
		return !ok || !slices.Contains(r.Values, have)
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		return ok && compare(r, have)
	}
	return false
}

// compare does Gt and Lt, which work on whole numbers only.
func compare(r *corev1.NodeSelectorRequirement, have string) bool {
	if len(r.Values) != 1 {
		return false
	}
	is, err1 := strconv.ParseInt(have, 10, 64)
	than, err2 := strconv.ParseInt(r.Values[0], 10, 64)
	if err1 != nil || err2 != nil {
		return false
	}
	if r.Operator == corev1.NodeSelectorOpGt {
		return is > than
	}
	return is < than
}

// Pins returns the names of the only nodes that a pod can be on; nil if it may be on any. For a DaemonSet's pod, for
// example, one node has to be checked instead of thousands.
func Pins(spec *corev1.PodSpec) []string {
	terms, _ := RequiredTerms(spec)
	var names []string
	for i := range terms {
		found := false
		for _, r := range terms[i].MatchFields {
			if r.Key == metav1.ObjectNameField && r.Operator == corev1.NodeSelectorOpIn && len(r.Values) == 1 {
				found = true
				if !slices.Contains(names, r.Values[0]) {
					names = append(names, r.Values[0])
				}
			}
		}
		if !found {
			return nil
		}
	}
	return names
}
