package plan

import (
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/placement"
)

// closed is the taint that a cordoned node counts as having, even if it is not in its spec.
var closed = corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}

// unwelcome returns the number of PreferNoSchedule taints that a pod does not tolerate.
func unwelcome(list []corev1.Toleration, taints []corev1.Taint) (n int64) {
	for i := range taints {
		if taints[i].Effect == corev1.TaintEffectPreferNoSchedule && !placement.Tolerates(list, &taints[i]) {
			n++
		}
	}
	return n
}

// liking returns the sum of the weights of the preferred node terms that match the node.
func liking(spec *corev1.PodSpec, node *corev1.Node) (sum int64) {
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return 0
	}
	prefer := spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	for i := range prefer {
		if placement.MatchTerm(&prefer[i].Preference, node) {
			sum += int64(prefer[i].Weight)
		}
	}
	return sum
}
