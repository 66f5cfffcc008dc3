package kubelet

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/kubelet/cri"
)

// What a reboot ended is told from what had ended before, which the status alone knows.
func TestRecall(t *testing.T) {
	lost := dead("web", 2, 137, noon)
	lost.Lost, lost.StartedAt = true, ago(time.Hour)
	id := containerIDPrefix + lost.ID
	began, ended := metav1.NewTime(ago(30*time.Minute)), metav1.NewTime(ago(20*time.Minute))
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
		{"nothing is known", corev1.ContainerStatus{Name: "other"}, true, 137, ago(time.Hour), noon},
		{"it ran", corev1.ContainerStatus{Name: "web", ContainerID: id, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}}},
			true, 137, began.Time, noon},
		{"another ran", corev1.ContainerStatus{Name: "web", ContainerID: "containerd://x", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}}},
			true, 137, ago(time.Hour), noon},
		{"it had ended", corev1.ContainerStatus{Name: "web", ContainerID: id, State: end(0, "Completed")}, false, 0, began.Time, ended.Time},
		{"it was backing off", corev1.ContainerStatus{Name: "web", ContainerID: id, LastTerminationState: end(3, "Error")}, false, 3, began.Time, ended.Time},
		{"it was told before that it was lost", corev1.ContainerStatus{Name: "web", ContainerID: id, State: end(137, reasonLost)}, true, 137, ago(time.Hour), noon},
	} {
		t.Run(x.name, func(t *testing.T) {
			pod := testPod("web")
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{x.status}
			view := cri.Pod{Containers: []cri.Container{lost}}
			recall(&view, pod)
			c := view.Containers[0]
			if c.Lost != x.lost || c.ExitCode != x.code || !c.StartedAt.Equal(x.began) || !c.FinishedAt.Equal(x.ends) {
				t.Errorf("%+v", c)
			}
		})
	}
}

// What was lost is run again at once, and is no crash; what crashed before waits on.
func TestNoBackoffForTheLost(t *testing.T) {
	lost := dead("web", 3, 137, noon)
	lost.Lost = true
	cm := &containerMemory{}
	if at, _ := cm.restartAt(&lost); !at.IsZero() {
		t.Errorf("it waits until %s", at)
	}
	cm.restarted(&lost, noon)
	crashed := dead("web", 4, 1, noon.Add(time.Second))
	if at, delay := cm.restartAt(&crashed); !at.IsZero() {
		t.Errorf("its first crash waits %s", delay)
	}
	before := dead("web", 1, 1, noon)
	before.CreatedAt = ago(time.Minute)
	if at, _ := (&containerMemory{}).restartAt(&before); !at.Equal(noon.Add(crashBackoff)) {
		t.Errorf("what crashed waits until %s", at)
	}
}

// An address is shown as long as it is the pod's.
func TestAddressWithoutSandbox(t *testing.T) {
	had := func(change ...func(*corev1.Pod)) *corev1.Pod {
		p := testPod("web", change...)
		p.Status.PodIP, p.Status.PodIPs = "10.0.0.9", []corev1.PodIP{{IP: "10.0.0.9"}}
		return p
	}
	for _, x := range []struct {
		name string
		at   *stage
		want string
	}{
		{"after a reboot", at(had()).has(dead("web", 1, 1, noon)), ""},
		{"at its end", at(had(deleting(-time.Second, 30))).has(dead("web", 1, 1, noon)), "10.0.0.9"},
		{"with a sandbox", at(had()).sandbox().has(run("web", 1)), "10.0.0.2"},
		{"with half of one", at(had()).halfSandbox().has(run("web", 1)), "10.0.0.2"},
	} {
		st := statusFor(x.at.in, host)
		if st.PodIP != x.want || (x.want == "") != (len(st.PodIPs) == 0) {
			t.Errorf("%s: %q, %v", x.name, st.PodIP, st.PodIPs)
		}
	}
}
