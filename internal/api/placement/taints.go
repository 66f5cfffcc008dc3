package placement

import (
	corev1 "k8s.io/api/core/v1"
)

// Tolerates reports whether one of the tolerations matches the taint.
func Tolerates(list []corev1.Toleration, taint *corev1.Taint) bool {
	for i := range list {
		if Takes(&list[i], taint) {
			return true
		}
	}
	return false
}

// Takes reports whether a toleration matches the taint, for any length of time.
func Takes(t *corev1.Toleration, taint *corev1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	switch t.Operator {
	case corev1.TolerationOpExists:
		return true
	case corev1.TolerationOpEqual, "":
		return t.Key != "" && t.Value == taint.Value
	}
	return false
}

// Untolerated returns the index of the first taint that keeps a pod from coming; -1 if none does.
func Untolerated(list []corev1.Toleration, taints []corev1.Taint) int {
	for i := range taints {
		if taints[i].Effect != corev1.TaintEffectPreferNoSchedule && !Tolerates(list, &taints[i]) {
			return i
		}
	}
	return -1
}

// Evicts returns the index of the first taint that evicts a pod that is already there; -1 if none does.
func Evicts(list []corev1.Toleration, taints []corev1.Taint) int {
	for i := range taints {
		if taints[i].Effect == corev1.TaintEffectNoExecute && !Tolerates(list, &taints[i]) {
			return i
		}
	}
	return -1
}
