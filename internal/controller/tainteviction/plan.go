package tainteviction

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/placement"
)

// decision is what to do with a pod on a node with NoExecute taints.
type decision struct {
	evict bool
	after time.Duration // reconcile again after this time; 0: not before something changes
}

// decide is the controller's decision; it is pure. A taint that a pod does not tolerate evicts it at once. Of taints
// that it tolerates for a time, the shortest time counts, from when the taint was added: seen says that by the same clock
// as now.
func decide(pod *corev1.Pod, node *corev1.Node, seen func(*corev1.Taint) time.Time, now time.Time) decision {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return decision{}
	}
	var v decision
	for _, t := range node.Spec.Taints {
		if t.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		stays, limited := tolerated(pod, &t)
		if !stays {
			return decision{evict: true}
		}
		if limited < 0 {
			continue
		}
		left := seen(&t).Add(limited).Sub(now)
		if left <= 0 {
			return decision{evict: true}
		}
		if v.after == 0 || left < v.after {
			v.after = left
		}
	}
	return v
}

// tolerated reports whether a pod tolerates a taint, and for how long; less than 0 is for ever. Of several
// tolerations the shortest time counts.
func tolerated(pod *corev1.Pod, taint *corev1.Taint) (stays bool, limited time.Duration) {
	limited = -1
	for i := range pod.Spec.Tolerations {
		t := &pod.Spec.Tolerations[i]
		if !placement.Takes(t, taint) {
			continue
		}
		stays = true
		if t.TolerationSeconds != nil {
			if d := max(time.Duration(*t.TolerationSeconds)*time.Second, 0); limited < 0 || d < limited {
				limited = d
			}
		}
	}
	return stays, limited
}
