package daemonset

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/placement"
)

// eligible says whether a node should get the pod, and whether one that it has may stay.
func eligible(ds *appsv1.DaemonSet, node *corev1.Node) (run, stay bool) {
	spec := &ds.Spec.Template.Spec
	if spec.NodeName != "" && spec.NodeName != node.Name || !placement.Selects(spec, node) {
		return false, false
	}
	tolerations := tolerate(spec)
	return placement.Untolerated(tolerations, node.Spec.Taints) < 0, placement.Evicts(tolerations, node.Spec.Taints) < 0
}

// tolerate adds the tolerations of a daemon set's pods: they stay on their node whatever its condition
// (AddOrUpdateDaemonPodTolerations in pkg/controller/daemon/util).
func tolerate(spec *corev1.PodSpec) []corev1.Toleration {
	out := slices.Clone(spec.Tolerations)
	add := func(key string, effect corev1.TaintEffect) {
		t := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}
		if !slices.ContainsFunc(out, func(o corev1.Toleration) bool {
			return o.Key == t.Key && o.Effect == t.Effect && o.Operator == t.Operator && o.TolerationSeconds == nil
		}) {
			out = append(out, t)
		}
	}
	add(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute)
	add(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute)
	add(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule)
	add(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule)
	add(corev1.TaintNodePIDPressure, corev1.TaintEffectNoSchedule)
	add(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)
	// Kubernetes does not add this one: a node that has just stopped its heartbeats has this taint, too.
	add(corev1.TaintNodeNotReady, corev1.TaintEffectNoSchedule)
	add(corev1.TaintNodeUnreachable, corev1.TaintEffectNoSchedule)
	if spec.HostNetwork {
		add(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule)
	}
	return out
}

// bindTo is the affinity that ties a pod to one node. Other requirements on the node have been checked already.
func bindTo(a *corev1.Affinity, node string) *corev1.Affinity {
	out := a.DeepCopy()
	if out == nil {
		out = &corev1.Affinity{}
	}
	if out.NodeAffinity == nil {
		out.NodeAffinity = &corev1.NodeAffinity{}
	}
	out.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
			Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
		}}}},
	}
	return out
}

// nodeOf is the node that a pod is on, or made for.
func nodeOf(p *corev1.Pod) string {
	if p.Spec.NodeName != "" {
		return p.Spec.NodeName
	}
	if p.Spec.Affinity == nil || p.Spec.Affinity.NodeAffinity == nil ||
		p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, t := range p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, r := range t.MatchFields {
			if r.Key == metav1.ObjectNameField && r.Operator == corev1.NodeSelectorOpIn && len(r.Values) == 1 {
				return r.Values[0]
			}
		}
	}
	return ""
}
