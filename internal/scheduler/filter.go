package scheduler

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// A filter says why a node cannot take a pod; nothing if it can. The words are Kubernetes'.
type filter func(p *podInfo, n *nodeInfo) []string

// filters are asked in order; the first that refuses is the reason.
var filters = []filter{unschedulable, nodeName, untolerated, selector, ports, fit}

// refusals are the reasons for which a node cannot take a pod.
func refusals(p *podInfo, n *nodeInfo) []string {
	for _, f := range filters {
		if why := f(p, n); len(why) > 0 {
			return why
		}
	}
	return nil
}

func unschedulable(p *podInfo, n *nodeInfo) []string {
	if n.node.Spec.Unschedulable && !tolerates(p.pod, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}) {
		return []string{"node(s) were unschedulable"}
	}
	if !n.ready {
		return []string{"node(s) were not ready"}
	}
	return nil
}

func nodeName(p *podInfo, n *nodeInfo) []string {
	if p.pod.Spec.NodeName != "" && p.pod.Spec.NodeName != n.node.Name {
		return []string{"node(s) didn't match the requested node name"}
	}
	return nil
}

func tolerates(pod *corev1.Pod, taint corev1.Taint) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
			return false
		}
		if t.Operator == corev1.TolerationOpExists {
			return true
		}
		return t.Key != "" && t.Value == taint.Value
	})
}

func untolerated(p *podInfo, n *nodeInfo) []string {
	for _, t := range n.node.Spec.Taints {
		if t.Effect == corev1.TaintEffectPreferNoSchedule || tolerates(p.pod, t) {
			continue
		}
		return []string{fmt.Sprintf("node(s) had untolerated taint {%s: %s}", t.Key, t.Value)}
	}
	return nil
}

func selector(p *podInfo, n *nodeInfo) []string {
	if len(p.pod.Spec.NodeSelector) > 0 && !labels.SelectorFromSet(p.pod.Spec.NodeSelector).Matches(labels.Set(n.node.Labels)) {
		return []string{"node(s) didn't match Pod's node affinity/selector"}
	}
	return nil
}

func ports(p *podInfo, n *nodeInfo) []string {
	for _, want := range p.ports {
		for have := range n.ports {
			if want.clashes(have) {
				return []string{"node(s) didn't have free ports for the requested pod ports"}
			}
		}
	}
	return nil
}

// fit gives every resource that is short, not only the first.
func fit(p *podInfo, n *nodeInfo) []string {
	var why []string
	if n.pods+1 > n.allocatable[corev1.ResourcePods] {
		why = append(why, "Too many pods")
	}
	for name, want := range p.requests {
		if want > 0 && n.requested[name]+want > n.allocatable[name] {
			why = append(why, "Insufficient "+string(name))
		}
	}
	sort.Strings(why)
	return why
}

// explain sums refusals up as Kubernetes does: "0/3 nodes are available: 2 Insufficient cpu, 1 ...".
func explain(nodes int, reasons map[string]int) string {
	if nodes == 0 {
		return "no nodes available to schedule pods"
	}
	parts := make([]string, 0, len(reasons))
	for r, n := range reasons {
		parts = append(parts, fmt.Sprintf("%d %s", n, r))
	}
	sort.Strings(parts)
	return fmt.Sprintf("0/%d nodes are available: %s.", nodes, strings.Join(parts, ", "))
}
