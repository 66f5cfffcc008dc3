package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// SpreadRule is a topology spread constraint with Kubernetes' defaults filled in. SpreadSelector says which pods it
// counts.
type SpreadRule struct {
	TopologyKey string
	MaxSkew     int32
	// MinDomains: with fewer domains than this, the lowest count is taken as zero.
	MinDomains int32
	// Required: whenUnsatisfiable is DoNotSchedule.
	Required bool

	ignoresAffinity bool // nodeAffinityPolicy Ignore
	honoursTaints   bool // nodeTaintsPolicy Honor
}

// SpreadRuleOf returns the rule of a constraint.
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

// CountsNode reports whether the pods of a node count. The node must have the rule's topology key. selected says that
// it matches the pod's nodeSelector and node affinity, tolerated that the pod tolerates its taints, complete that it
// has the topology keys of all required rules of the pod (InAllDomains).
func (r *SpreadRule) CountsNode(selected, tolerated, complete bool) bool {
	return (complete || !r.Required) && (selected || r.ignoresAffinity) && (tolerated || !r.honoursTaints)
}

// InAllDomains reports whether a node has the topology keys of all required rules.
func InAllDomains(rules []SpreadRule, node *corev1.Node) bool {
	return !slices.ContainsFunc(rules, func(r SpreadRule) bool {
		_, ok := node.Labels[r.TopologyKey]
		return r.Required && !ok
	})
}

// CountsPods reports whether any pods count. A selector that is given but empty counts none, though it selects the pod
// itself. Kubernetes' filters do the same (countPodsMatchSelector in plugins/podtopologyspread).
func CountsPods(s *PodSelector) bool { return !s.Labels.Empty() }
