package plan_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/plan"
	"minik8s/internal/kubelet/plan/plantest"
)

func TestRestartCountsNeverFall(t *testing.T) {
	pod := plantest.Pod("web")
	for _, c := range []struct {
		status corev1.ContainerStatus
		want   int
	}{
		{corev1.ContainerStatus{Name: "other", RestartCount: 5, ContainerID: "x"}, 0},
		{corev1.ContainerStatus{Name: "web"}, 0},
		{corev1.ContainerStatus{Name: "web", RestartCount: 2, ContainerID: "x"}, 3},
	} {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{c.status}
		if got := plan.NextAttempt(pod, "web"); got != c.want {
			t.Errorf("%+v: attempt %d, want %d", c.status, got, c.want)
		}
	}
}
