package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// SpreadRule is a topology spread constraint with Kubernetes' defaults filled in. Whom it counts is SpreadSelector's.
type SpreadRule struct {
	TopologyKey string
	MaxSkew     int32
	// MinDomains is below how many domains the least of the counts is taken for zero.
	MinDomains int32
	// Required is whenUnsatisfiable DoNotSchedule.
	Required bool

	ignoresAffinity bool // nodeAffinityPolicy Ignore
	honoursTaints   bool // nodeTaintsPolicy Honor
}

// SpreadRuleOf reads a constraint.
func SpreadRuleOf(t *corev1.TopologySpreadConstraint) SpreadRule {
	r := SpreadRule{TopologyKey: t.TopologyKey, MaxSkew: t.MaxSkew, MinDomains: 1,
		Required:        t.WhenUnsatisfiable != corev1.ScheduleAnyway,
		ignoresAffinity: t.NodeAffinityPolicy != nil && *t.NodeAffinityPolicy == corev1.NodeInclusionPolicyIgnore,
		honoursTaints:   t.NodeTaintsPolicy != nil && *t.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor}
	if t.MinDomains != nil {
		r.MinDomains = *t.MinDomains
	}
	return r
}

// CountsNode says whether the pods of a node count, which has the rule's topology key: selected says that the pod's
// nodeSelector and node affinity take the node, tolerated that the pod tolerates its taints, complete that it has the
// topology keys of all required rules of the pod (InAllDomains).
func (r *SpreadRule) CountsNode(selected, tolerated, complete bool) bool {
	return (complete || !r.Required) && (selected || r.ignoresAffinity) && (tolerated || !r.honoursTaints)
}

// InAllDomains says whether a node has the topology keys of all the rules that are required.
func InAllDomains(rules []SpreadRule, node *corev1.Node) bool {
	return !slices.ContainsFunc(rules, func(r SpreadRule) bool {
		_, ok := node.Labels[r.TopologyKey]
		return r.Required && !ok
	})
}

// CountsPods says whether pods count at all: a selector that is given and empty counts none, though it chooses the pod
// itself; so do Kubernetes' filters (countPodsMatchSelector in plugins/podtopologyspread).
func CountsPods(s *PodSelector) bool { return !s.Labels.Empty() }
