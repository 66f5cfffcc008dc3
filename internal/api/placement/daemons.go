package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// DaemonTolerations are those of a daemon set's pods, which stay on their node whatever its condition
// (AddOrUpdateDaemonPodTolerations in pkg/controller/daemon/util).
func DaemonTolerations(spec *corev1.PodSpec) []corev1.Toleration {
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
