package podspec

import (
	corev1 "k8s.io/api/core/v1"
)

// ContainerStatus returns the status of a container of any kind.
func ContainerStatus(st *corev1.PodStatus, name string) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{st.ContainerStatuses, st.InitContainerStatuses, st.EphemeralContainerStatuses} {
		if c := statusOf(list, name); c != nil {
			return c
		}
	}
	return nil
}

func statusOf(list []corev1.ContainerStatus, name string) *corev1.ContainerStatus {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

// Condition returns the condition of that type; nil if there is none.
func Condition(list []corev1.PodCondition, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range list {
		if list[i].Type == t {
			return &list[i]
		}
	}
	return nil
}

// Finished reports whether the phase is final.
func Finished(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}
