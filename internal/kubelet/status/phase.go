package status

import (
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/plan"
)

// endedInTime reports whether the containers had all ended for good before the pod's deadline.
func endedInTime(pod *corev1.Pod, statuses []corev1.ContainerStatus) bool {
	for i := range statuses {
		t := statuses[i].State.Terminated
		if t == nil || plan.RestartPolicyAllows(pod, statuses[i].Name, t.ExitCode) || t.FinishedAt.After(plan.Deadline(pod)) || t.FinishedAt.Time.Equal(plan.Deadline(pod)) {
			return false
		}
	}
	return true
}

// phaseOf sums the containers up, as getPhase in pkg/kubelet/kubelet_pods.go does.
func phaseOf(in plan.Input, statuses []corev1.ContainerStatus) corev1.PodPhase {
	var running, waiting, stopped, succeeded int
	for i := range statuses {
		switch st := &statuses[i]; {
		case st.State.Running != nil:
			running++
		case st.State.Terminated != nil:
			stopped++
			if st.State.Terminated.ExitCode == 0 {
				succeeded++
			}
		case st.LastTerminationState.Terminated != nil: // waits to be started again
			stopped++
		default:
			waiting++
		}
	}
	// A pod that is to end is in a final phase once nothing runs, whatever its restartPolicy.
	if e := in.Termination(); e != nil && !in.Active() && waiting+running == 0 {
		if succeeded == len(statuses) {
			return corev1.PodSucceeded
		}
		return corev1.PodFailed
	}
	switch {
	case in.InitFailed() && !in.Active():
		return corev1.PodFailed
	case waiting > 0, in.Termination() == nil && !in.Initialized():
		return corev1.PodPending
	case running == 0 && len(in.Pod.Spec.InitContainers)+len(in.Pod.Spec.EphemeralContainers) > 0 && in.Active(): // others have yet to end
		return corev1.PodRunning
	case running > 0, in.Pod.Spec.RestartPolicy == corev1.RestartPolicyAlways, in.Pod.Spec.RestartPolicy == "", willRestartAnyway(in):
		return corev1.PodRunning
	case stopped == succeeded:
		return corev1.PodSucceeded
	case in.Pod.Spec.RestartPolicy == corev1.RestartPolicyNever:
		return corev1.PodFailed
	default:
		return corev1.PodRunning
	}
}

// willRestartAnyway reports whether a container restarts whatever the restart policy: with another image, or because
// it failed a probe or a hook.
func willRestartAnyway(in plan.Input) bool {
	for i := range in.Pod.Spec.Containers {
		if c := plan.NewestStarted(in.View, in.Pod.Spec.Containers[i].Name); c != nil && (plan.ImageChanged(in.Pod, c) || in.HealthOf(c).Kill != nil && in.WillRestart(c)) {
			return true
		}
	}
	return false
}
