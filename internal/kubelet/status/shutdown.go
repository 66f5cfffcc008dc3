package status

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/plan"
)

// As in pkg/kubelet/nodeshutdown: people and their tools look for these words.
const (
	shutdownReason  = "Terminated"
	shutdownMessage = "Pod was terminated in response to imminent node shutdown."
)

// endedByShutdown reports whether the pod has ended because the machine shuts down.
func endedByShutdown(in plan.Input) bool {
	e := in.Termination()
	return e != nil && e.Shutdown && !in.Active()
}

// failByShutdown fails the pod, so that its controller makes another one elsewhere. One that was to end by itself, and
// has done so without an error, has succeeded all the same.
func failByShutdown(pod *corev1.Pod, st *corev1.PodStatus) {
	st.Reason, st.Message = shutdownReason, shutdownMessage
	toEnd := pod.Spec.RestartPolicy == corev1.RestartPolicyNever || pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure
	if st.Phase != corev1.PodSucceeded || !toEnd {
		failUnstarted(st)
	}
}

// setDisrupted says that the pod's end was not its own doing (KEP-3329).
func setDisrupted(in plan.Input, st *corev1.PodStatus) {
	c := corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonTerminationByKubelet,
		Message: shutdownMessage, ObservedGeneration: in.Pod.Generation, LastTransitionTime: metav1.NewTime(in.Now).Rfc3339Copy()}
	if old := podspec.Condition(st.Conditions, c.Type); old != nil {
		if old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		*old = c
		return
	}
	st.Conditions = append(st.Conditions, c)
}
