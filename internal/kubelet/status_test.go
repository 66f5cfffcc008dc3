package kubelet

import (
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/kubelet/cri"
)

var host = netip.MustParseAddr("192.0.2.1")

func TestPhase(t *testing.T) {
	never, onFailure := policy(corev1.RestartPolicyNever), policy(corev1.RestartPolicyOnFailure)
	cases := []struct {
		name  string
		at    *stage
		phase corev1.PodPhase
		ready string // reason of ContainersReady
	}{
		{"nothing yet", at(testPod("web")), corev1.PodPending, "ContainersNotReady"},
		{"runs", at(testPod("web")).sandbox().has(run("web", 0)), corev1.PodRunning, ""},
		{"one of two runs", at(testPod("web", two)).sandbox().has(run("web", 0)), corev1.PodPending, "ContainersNotReady"},
		{"one runs, one crashed", at(testPod("web", two)).sandbox().has(run("web", 0)).has(dead("app", 1, 1, noon)), corev1.PodRunning, "ContainersNotReady"},
		{"always: all crashed", at(testPod("web")).sandbox().has(dead("web", 1, 1, noon)), corev1.PodRunning, "ContainersNotReady"},
		{"always: all completed", at(testPod("web")).sandbox().has(dead("web", 1, 0, noon)), corev1.PodRunning, "ContainersNotReady"},
		{"never: failed", at(testPod("web", never)).sandbox().has(dead("web", 0, 1, noon)), corev1.PodFailed, "PodFailed"},
		{"never: completed", at(testPod("web", never)).sandbox().has(dead("web", 0, 0, noon)), corev1.PodSucceeded, "PodCompleted"},
		{"never: one failed, one runs", at(testPod("web", never, two)).sandbox().has(dead("web", 0, 1, noon)).has(run("app", 0)), corev1.PodRunning, "ContainersNotReady"},
		{"on failure: failed", at(testPod("web", onFailure)).sandbox().has(dead("web", 1, 1, noon)), corev1.PodRunning, "ContainersNotReady"},
		{"on failure: completed", at(testPod("web", onFailure)).sandbox().has(dead("web", 1, 0, noon)), corev1.PodSucceeded, "PodCompleted"},
		{"deleted, still runs", at(testPod("web", deleting(30*time.Second, 30))).sandbox().has(run("web", 0)), corev1.PodRunning, ""},
		{"deleted, ended badly", at(testPod("web", deleting(30*time.Second, 30))).sandbox().has(dead("web", 0, 143, noon)), corev1.PodFailed, "PodFailed"},
		{"deleted, ended well", at(testPod("web", deleting(30*time.Second, 30))).sandbox().has(dead("web", 0, 0, noon)), corev1.PodSucceeded, "PodCompleted"},
		{"deleted before it began", at(testPod("web", deleting(30*time.Second, 30))), corev1.PodFailed, "PodFailed"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			st := statusFor(c.at.in, host)
			ready := conditionOf(st.Conditions, corev1.ContainersReady)
			if st.Phase != c.phase || ready.Reason != c.ready {
				t.Errorf("phase %s, want %s; reason %q, want %q", st.Phase, c.phase, ready.Reason, c.ready)
			}
		})
	}
}

func TestContainerState(t *testing.T) {
	find := func(s *stage) corev1.ContainerStatus {
		st := statusFor(s.in, host)
		return *statusOf(st.ContainerStatuses, "web")
	}
	image := action{verb: ensureImage, container: "web"}
	trouble := func(s *stage, reason string, when time.Time) *stage {
		s.in.mem.failures[image.key()] = &failure{reason: reason, message: "m", at: when}
		return s
	}
	waiting := []struct {
		name, reason, message string
		at                    *stage
	}{
		{"new", "ContainerCreating", "", at(testPod("web"))},
		{"created", "ContainerCreating", "", at(testPod("web")).has(cri.Container{ID: "w", Name: "web"})},
		{"pull failed now", "ErrImagePull", "m", trouble(at(testPod("web")), "ErrImagePull", noon)},
		{"pull failed before", "ImagePullBackOff", `Back-off pulling image "web:1": ErrImagePull: m`, trouble(at(testPod("web")), "ErrImagePull", ago(3*time.Second))},
		{"never pull", "ErrImageNeverPull", "m", trouble(at(testPod("web")), "ErrImageNeverPull", ago(time.Hour))},
		{"crash loop", "CrashLoopBackOff", "back-off 10s restarting failed container=web pod=web_default(u1)", at(testPod("web")).has(dead("web", 1, 1, noon))},
		{"pull fails at a restart", "ErrImagePull", "m", trouble(at(testPod("web")).has(dead("web", 0, 1, noon)), "ErrImagePull", noon)},
	}
	for _, c := range waiting {
		t.Run(c.name, func(t *testing.T) {
			w := find(c.at).State.Waiting
			if w == nil || w.Reason != c.reason || w.Message != c.message {
				t.Errorf("%+v, want %s %q", w, c.reason, c.message)
			}
		})
	}
	t.Run("just restarting", func(t *testing.T) {
		if st := find(at(testPod("web")).has(dead("web", 0, 1, noon))); st.State.Terminated == nil {
			t.Errorf("%+v", st)
		}
	})
	t.Run("restarted", func(t *testing.T) {
		st := find(at(testPod("web")).sandbox().has(dead("web", 0, 3, noon)).has(run("web", 1)))
		if st.RestartCount != 1 || st.LastTerminationState.Terminated == nil || st.LastTerminationState.Terminated.ExitCode != 3 || !st.Ready || !*st.Started {
			t.Errorf("%+v", st)
		}
	})
	t.Run("last state outlives its container", func(t *testing.T) {
		s := at(testPod("web")).sandbox().has(run("web", 1))
		s.in.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", ContainerID: "containerd://web0",
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: "containerd://web0", Reason: "OOMKilled"}}}}
		if last := find(s).LastTerminationState.Terminated; last == nil || last.Reason != "OOMKilled" {
			t.Errorf("%+v", last)
		}
	})
	t.Run("a running container that the runtime lost", func(t *testing.T) {
		s := at(testPod("web"))
		s.in.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", ContainerID: "containerd://web0", RestartCount: 2,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		st := find(s)
		if last := st.LastTerminationState.Terminated; last == nil || last.Reason != "ContainerStatusUnknown" || last.ExitCode != 137 || st.State.Waiting == nil || st.RestartCount != 2 {
			t.Errorf("%+v", st)
		}
	})
	t.Run("messages and start errors", func(t *testing.T) {
		c := dead("web", 0, 127, noon)
		c.StartError = "no such file"
		s := at(testPod("web", policy(corev1.RestartPolicyNever))).has(c)
		if end := find(s).State.Terminated; end.Reason != "StartError" || end.Message != "no such file" {
			t.Errorf("%+v", end)
		}
	})
}

func TestConditions(t *testing.T) {
	s := at(testPod("web")).sandbox().has(run("web", 0))
	s.in.pod.Generation = 4
	old := metav1.NewTime(ago(time.Hour))
	s.in.pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: old},
		{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: old},
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: old},
		{Type: "example.com/mine", Status: corev1.ConditionFalse, LastTransitionTime: old},
	}
	st := statusFor(s.in, host)
	if len(st.Conditions) != 6 {
		t.Fatalf("%+v", st.Conditions)
	}
	get := func(name corev1.PodConditionType) *corev1.PodCondition { return conditionOf(st.Conditions, name) }
	if c := get(corev1.PodReady); c.Status != corev1.ConditionTrue || !c.LastTransitionTime.Time.Equal(noon) || c.ObservedGeneration != 4 {
		t.Errorf("a change of status is a transition: %+v", c)
	}
	if c := get(corev1.PodInitialized); !c.LastTransitionTime.Equal(&old) {
		t.Errorf("no change is none: %+v", c)
	}
	if c := get("example.com/mine"); c.Status != corev1.ConditionFalse || !c.LastTransitionTime.Equal(&old) {
		t.Errorf("what others wrote stays: %+v", c)
	}
	s.in.pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/mine"}}
	st = statusFor(s.in, host)
	if c := get(corev1.PodReady); c.Status != corev1.ConditionFalse || c.Reason != "ReadinessGatesNotReady" {
		t.Errorf("%+v", c)
	}
	if c := get(corev1.ContainersReady); c.Status != corev1.ConditionTrue {
		t.Errorf("%+v", c)
	}
}

func TestStatusIsAFixedPoint(t *testing.T) {
	for _, s := range []*stage{
		at(testPod("web", two)), at(testPod("web")).sandbox().has(run("web", 0)),
		at(testPod("web")).sandbox().has(dead("web", 1, 1, noon)),
		at(testPod("web", policy(corev1.RestartPolicyNever))).sandbox().has(dead("web", 0, 1, noon)),
	} {
		st := statusFor(s.in, host)
		s.in.pod.Status = st
		s.in.now = s.in.now.Add(time.Second)
		if again := statusFor(s.in, host); !equalStatus(&st, &again) {
			t.Errorf("from\n%+v\nto\n%+v", st, again)
		}
	}
}
