package status

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/cri"
)

// Restore completes what the runtime knows of containers after a reboot, from the pod's status: the runtime's
// own records of how containers ended do not outlive a reboot, the API's do. A container that had ended
// before, perhaps successfully, did not end with the machine, and so is not restarted because of it.
func Restore(view *cri.Pod, pod *corev1.Pod) {
	if pod == nil {
		return
	}
	for i := range view.Containers {
		c := &view.Containers[i]
		if !c.Lost {
			continue
		}
		st := podspec.ContainerStatus(&pod.Status, c.Name)
		if st == nil {
			continue
		}
		for _, s := range []corev1.ContainerState{st.State, st.LastTerminationState} {
			switch t, r := s.Terminated, s.Running; {
			case t != nil && t.Reason == ReasonLost: // an earlier estimate of the same end
			case t != nil && t.ContainerID == cri.ContainerIDPrefix+c.ID:
				c.Lost, c.ExitCode, c.Signal = false, t.ExitCode, int(t.Signal)
				c.StartedAt, c.FinishedAt = goTime(t.StartedAt), goTime(t.FinishedAt)
				c.OOMKilled = t.Reason == "OOMKilled"
				if t.Reason == "StartError" {
					c.StartError = t.Message
				}
			case r != nil && st.ContainerID == cri.ContainerIDPrefix+c.ID && r.StartedAt.Time.Before(c.FinishedAt):
				c.StartedAt = r.StartedAt.Time
			}
		}
	}
}

// goTime undoes apiTime.
func goTime(t metav1.Time) (out time.Time) {
	if t.Unix() == 0 {
		return out
	}
	return t.Time
}
