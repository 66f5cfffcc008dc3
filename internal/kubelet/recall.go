package kubelet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/kubelet/cri"
)

// recall completes what the runtime knows of containers that the end of the machine took, by what the pod's
// status says of them: the runtime's own records of ends do not outlive a boot, the API's do. One that
// had ended before, and well perhaps, did not end with the machine, and is not run again for it.
func recall(view *cri.Pod, pod *corev1.Pod) {
	if pod == nil {
		return
	}
	for i := range view.Containers {
		c := &view.Containers[i]
		if !c.Lost {
			continue
		}
		st := statusIn(&pod.Status, c.Name)
		if st == nil {
			continue
		}
		for _, s := range []corev1.ContainerState{st.State, st.LastTerminationState} {
			switch t, r := s.Terminated, s.Running; {
			case t != nil && t.Reason == reasonLost: // what was made of this
			case t != nil && t.ContainerID == containerIDPrefix+c.ID:
				c.Lost, c.ExitCode, c.Signal = false, t.ExitCode, int(t.Signal)
				c.StartedAt, c.FinishedAt = timeFrom(t.StartedAt), timeFrom(t.FinishedAt)
				c.OOMKilled = t.Reason == "OOMKilled"
				if t.Reason == "StartError" {
					c.StartError = t.Message
				}
			case r != nil && st.ContainerID == containerIDPrefix+c.ID && r.StartedAt.Time.Before(c.FinishedAt):
				c.StartedAt = r.StartedAt.Time
			}
		}
	}
}

// timeFrom undoes timeOf.
func timeFrom(t metav1.Time) (out time.Time) {
	if t.Unix() == 0 {
		return out
	}
	return t.Time
}
