package plan

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// closed is the taint for which a cordoned node stands, whether or not it carries it.
var closed = corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}

func tolerates(list []corev1.Toleration, taint *corev1.Taint) bool {
	for i := range list {
		t := &list[i]
		if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
			continue
		}
		switch t.Operator {
		case corev1.TolerationOpExists:
			return true
		case corev1.TolerationOpEqual, "":
			if t.Key != "" && t.Value == taint.Value {
				return true
			}
		}
	}
	return false
}

// untolerated is the number of the first taint that keeps the pod away; -1 if none does.
func untolerated(list []corev1.Toleration, taints []corev1.Taint) int {
	for i := range taints {
		if taints[i].Effect != corev1.TaintEffectPreferNoSchedule && !tolerates(list, &taints[i]) {
			return i
		}
	}
	return -1
}

// unwelcome is how many PreferNoSchedule taints a pod does not tolerate.
func unwelcome(list []corev1.Toleration, taints []corev1.Taint) (n int64) {
	for i := range taints {
		if taints[i].Effect == corev1.TaintEffectPreferNoSchedule && !tolerates(list, &taints[i]) {
			n++
		}
	}
	return n
}

// selects says whether nodeSelector and required node affinity take the node.
func selects(spec *corev1.PodSpec, node *corev1.Node) bool {
	for k, v := range spec.NodeSelector {
		if have, ok := node.Labels[k]; !ok || have != v {
			return false
		}
	}
	must := requiredTerms(spec)
	if must == nil {
		return true
	}
	for i := range must.NodeSelectorTerms {
		if matchTerm(&must.NodeSelectorTerms[i], node) {
			return true
		}
	}
	return false
}

func requiredTerms(spec *corev1.PodSpec) *corev1.NodeSelector {
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return nil
	}
	return spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// liking is the sum of the weights of the preferred node terms that take the node.
func liking(spec *corev1.PodSpec, node *corev1.Node) (sum int64) {
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return 0
	}
	prefer := spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	for i := range prefer {
		if matchTerm(&prefer[i].Preference, node) {
			sum += int64(prefer[i].Weight)
		}
	}
	return sum
}

// matchTerm: all of a term must hold; an empty one takes nothing.
func matchTerm(t *corev1.NodeSelectorTerm, node *corev1.Node) bool {
	if len(t.MatchExpressions)+len(t.MatchFields) == 0 {
		return false
	}
	for i := range t.MatchExpressions {
		if !matchLabel(&t.MatchExpressions[i], node.Labels) {
			return false
		}
	}
	for i := range t.MatchFields {
		r := &t.MatchFields[i]
		if r.Key != metadataName || len(r.Values) != 1 {
			return false
		}
		if same := r.Values[0] == node.Name; r.Operator == corev1.NodeSelectorOpIn && !same ||
			r.Operator == corev1.NodeSelectorOpNotIn && same ||
			r.Operator != corev1.NodeSelectorOpIn && r.Operator != corev1.NodeSelectorOpNotIn {
			return false
		}
	}
	return true
}

const metadataName = "metadata.name"

func matchLabel(r *corev1.NodeSelectorRequirement, labels map[string]string) bool {
	have, ok := labels[r.Key]
	switch r.Operator {
	case corev1.NodeSelectorOpExists:
		return ok
	case corev1.NodeSelectorOpDoesNotExist:
		return !ok
	case corev1.NodeSelectorOpIn:
		return ok && contains(r.Values, have)
	case corev1.NodeSelectorOpNotIn:
		return !ok || !contains(r.Values, have)
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if !ok || len(r.Values) != 1 {
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
	return false
}

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}

// pins are the nodes that a pod can only be on, by name; nil if it may be on any. A DaemonSet's pods are
// such: one node has to be looked at, not thousands.
func pins(spec *corev1.PodSpec) []string {
	must := requiredTerms(spec)
	if must == nil {
		return nil
	}
	var names []string
	for i := range must.NodeSelectorTerms {
		found := false
		for _, r := range must.NodeSelectorTerms[i].MatchFields {
			if r.Key == metadataName && r.Operator == corev1.NodeSelectorOpIn && len(r.Values) == 1 {
				found = true
				if !contains(names, r.Values[0]) {
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
