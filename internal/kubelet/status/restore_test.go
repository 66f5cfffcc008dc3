package status_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/plan/plantest"
	"minik8s/internal/kubelet/status"
)

// What a reboot ended is told from what had ended before, which the status alone knows.
func TestRestore(t *testing.T) {
	lost := plantest.Exited("web", 2, 137, plantest.Noon)
	lost.Lost, lost.StartedAt = true, plantest.Ago(time.Hour)
	id := cri.ContainerIDPrefix + lost.ID
	began, ended := metav1.NewTime(plantest.Ago(30*time.Minute)), metav1.NewTime(plantest.Ago(20*time.Minute))
	end := func(code int32, reason string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: id, ExitCode: code, Reason: reason, StartedAt: began, FinishedAt: ended}}
	}
	for _, x := range []struct {
		name        string
		status      corev1.ContainerStatus
		lost        bool
		code        int32
		began, ends time.Time
	}{
		{"nothing is known", corev1.ContainerStatus{Name: "other"}, true, 137, plantest.Ago(time.Hour), plantest.Noon},
		{"it ran", corev1.ContainerStatus{Name: "web", ContainerID: id, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}}},
			true, 137, began.Time, plantest.Noon},
		{"another ran", corev1.ContainerStatus{Name: "web", ContainerID: "containerd://x", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}}},
			true, 137, plantest.Ago(time.Hour), plantest.Noon},
		{"it had ended", corev1.ContainerStatus{Name: "web", ContainerID: id, State: end(0, "Completed")}, false, 0, began.Time, ended.Time},
		{"it was backing off", corev1.ContainerStatus{Name: "web", ContainerID: id, LastTerminationState: end(3, "Error")}, false, 3, began.Time, ended.Time},
		{"it was told before that it was lost", corev1.ContainerStatus{Name: "web", ContainerID: id, State: end(137, status.ReasonLost)}, true, 137, plantest.Ago(time.Hour), plantest.Noon},
	} {
		t.Run(x.name, func(t *testing.T) {
			pod := plantest.Pod("web")
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{x.status}
			view := cri.Pod{Containers: []cri.Container{lost}}
			status.Restore(&view, pod)
			c := view.Containers[0]
			if c.Lost != x.lost || c.ExitCode != x.code || !c.StartedAt.Equal(x.began) || !c.FinishedAt.Equal(x.ends) {
				t.Errorf("%+v", c)
			}
		})
	}
}

// An address is shown as long as it is the pod's.
func TestAddressWithoutSandbox(t *testing.T) {
	had := func(change ...func(*corev1.Pod)) *corev1.Pod {
		p := plantest.Pod("web", change...)
		p.Status.PodIP, p.Status.PodIPs = "10.0.0.9", []corev1.PodIP{{IP: "10.0.0.9"}}
		return p
	}
	for _, x := range []struct {
		name string
		at   *plantest.Given
		want string
	}{
		{"after a reboot", plantest.At(had()).Has(plantest.Exited("web", 1, 1, plantest.Noon)), ""},
		{"at its end", plantest.At(had(plantest.Deleting(-time.Second, 30))).Has(plantest.Exited("web", 1, 1, plantest.Noon)), "10.0.0.9"},
		{"with a sandbox", plantest.At(had()).Sandbox().Has(plantest.Running("web", 1)), "10.0.0.2"},
		{"with half of one", plantest.At(had()).BrokenSandbox().Has(plantest.Running("web", 1)), "10.0.0.2"},
	} {
		st := status.Of(x.at.In, plantest.HostIP)
		if st.PodIP != x.want || (x.want == "") != (len(st.PodIPs) == 0) {
			t.Errorf("%s: %q, %v", x.name, st.PodIP, st.PodIPs)
		}
	}
}
