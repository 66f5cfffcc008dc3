package status_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/plan"
	"minik8s/internal/kubelet/plan/plantest"
	"minik8s/internal/kubelet/status"
)

func TestEphemeralStatus(t *testing.T) {
	never := plantest.RestartPolicy(corev1.RestartPolicyNever)
	show := func(s *plantest.Given) string {
		st := status.Of(s.In, plantest.HostIP)
		var parts []string
		for _, c := range st.EphemeralContainerStatuses {
			what := "?"
			switch {
			case c.State.Running != nil:
				what = "runs"
			case c.State.Terminated != nil:
				what = fmt.Sprint(c.State.Terminated.Reason, c.State.Terminated.ExitCode)
			case c.State.Waiting != nil:
				what = c.State.Waiting.Reason + c.State.Waiting.Message
			}
			if c.Ready || c.Started != nil || c.RestartCount != 0 || c.LastTerminationState.Terminated != nil {
				what += "!"
			}
			parts = append(parts, c.Name+":"+what)
		}
		ready := podspec.Condition(st.Conditions, corev1.PodReady)
		return string(st.Phase) + " " + string(ready.Status) + " " + strings.Join(parts, " ")
	}
	pod := func(change ...func(*corev1.Pod)) *plantest.Given {
		return plantest.At(plantest.Pod("web", change...)).Sandbox()
	}
	on := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for _, c := range []struct {
		name string
		at   *plantest.Given
		want string
	}{
		{"not yet", pod(plantest.WithDebug("e", "d")).Has(plantest.Running("web", 0)), "Running True d:ContainerCreating e:ContainerCreating"},
		{"no image", pod(plantest.WithDebug("d")).Has(plantest.Running("web", 0)).Failed(plan.Action{Verb: plan.EnsureImage, Container: "d"}, plantest.Noon.Add(time.Second)), "Running True d:X"},
		{"no target", pod(plantest.WithDebug("d>web")).Image("d").Has(plantest.Exited("web", 0, 1, plantest.Noon)), `Running False d:ContainerCreatingthe target container "web" is not running`},
		{"runs", pod(plantest.WithDebug("d")).Has(plantest.Running("web", 0)).Has(plantest.Running("d", 0)), "Running True d:runs"},
		{"has failed", pod(plantest.WithDebug("d")).Has(plantest.Running("web", 0)).Has(plantest.Exited("d", 0, 7, plantest.Noon)), "Running True d:Error7"},
		{"is lost", pod(plantest.WithDebug("d"), plantest.Ran("d", on)).Has(plantest.Running("web", 0)), "Running True d:ContainerStatusUnknown137"},
		{"alone it makes no pod run", pod(plantest.WithDebug("d")).Has(plantest.Running("d", 0)), "Pending False d:runs"},
		{"the pod has ended when it has", pod(plantest.WithDebug("d"), never).Has(plantest.Exited("web", 0, 0, plantest.Noon)).Has(plantest.Running("d", 0)), "Running False d:runs"},
		{"its end does not count", pod(plantest.WithDebug("d"), never).Has(plantest.Exited("web", 0, 0, plantest.Noon)).Has(plantest.Exited("d", 0, 7, plantest.Noon)), "Succeeded False d:Error7"},
	} {
		if got := show(c.at); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestPhase(t *testing.T) {
	never, onFailure := plantest.RestartPolicy(corev1.RestartPolicyNever), plantest.RestartPolicy(corev1.RestartPolicyOnFailure)
	cases := []struct {
		name  string
		at    *plantest.Given
		phase corev1.PodPhase
		ready string // reason of ContainersReady
	}{
		{"nothing yet", plantest.At(plantest.Pod("web")), corev1.PodPending, "ContainersNotReady"},
		{"runs", plantest.At(plantest.Pod("web")).Sandbox().Has(plantest.Running("web", 0)), corev1.PodRunning, ""},
		{"one of two runs", plantest.At(plantest.Pod("web", plantest.TwoContainers)).Sandbox().Has(plantest.Running("web", 0)), corev1.PodPending, "ContainersNotReady"},
		{"one runs, one crashed", plantest.At(plantest.Pod("web", plantest.TwoContainers)).Sandbox().Has(plantest.Running("web", 0)).Has(plantest.Exited("app", 1, 1, plantest.Noon)), corev1.PodRunning, "ContainersNotReady"},
		{"always: all crashed", plantest.At(plantest.Pod("web")).Sandbox().Has(plantest.Exited("web", 1, 1, plantest.Noon)), corev1.PodRunning, "ContainersNotReady"},
		{"always: all completed", plantest.At(plantest.Pod("web")).Sandbox().Has(plantest.Exited("web", 1, 0, plantest.Noon)), corev1.PodRunning, "ContainersNotReady"},
		{"never: failed", plantest.At(plantest.Pod("web", never)).Sandbox().Has(plantest.Exited("web", 0, 1, plantest.Noon)), corev1.PodFailed, "PodFailed"},
		{"never: completed", plantest.At(plantest.Pod("web", never)).Sandbox().Has(plantest.Exited("web", 0, 0, plantest.Noon)), corev1.PodSucceeded, "PodCompleted"},
		{"never: one failed, one runs", plantest.At(plantest.Pod("web", never, plantest.TwoContainers)).Sandbox().Has(plantest.Exited("web", 0, 1, plantest.Noon)).Has(plantest.Running("app", 0)), corev1.PodRunning, "ContainersNotReady"},
		{"on failure: failed", plantest.At(plantest.Pod("web", onFailure)).Sandbox().Has(plantest.Exited("web", 1, 1, plantest.Noon)), corev1.PodRunning, "ContainersNotReady"},
		{"on failure: completed", plantest.At(plantest.Pod("web", onFailure)).Sandbox().Has(plantest.Exited("web", 1, 0, plantest.Noon)), corev1.PodSucceeded, "PodCompleted"},
		{"deleted, still runs", plantest.At(plantest.Pod("web", plantest.Deleting(30*time.Second, 30))).Sandbox().Has(plantest.Running("web", 0)), corev1.PodRunning, ""},
		{"deleted, ended badly", plantest.At(plantest.Pod("web", plantest.Deleting(30*time.Second, 30))).Sandbox().Has(plantest.Exited("web", 0, 143, plantest.Noon)), corev1.PodFailed, "PodFailed"},
		{"deleted, ended well", plantest.At(plantest.Pod("web", plantest.Deleting(30*time.Second, 30))).Sandbox().Has(plantest.Exited("web", 0, 0, plantest.Noon)), corev1.PodSucceeded, "PodCompleted"},
		{"deleted before it began", plantest.At(plantest.Pod("web", plantest.Deleting(30*time.Second, 30))), corev1.PodFailed, "PodFailed"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			st := status.Of(c.at.In, plantest.HostIP)
			ready := podspec.Condition(st.Conditions, corev1.ContainersReady)
			if st.Phase != c.phase || ready.Reason != c.ready {
				t.Errorf("phase %s, want %s; reason %q, want %q", st.Phase, c.phase, ready.Reason, c.ready)
			}
		})
	}
}

func TestContainerState(t *testing.T) {
	find := func(s *plantest.Given) corev1.ContainerStatus {
		st := status.Of(s.In, plantest.HostIP)
		return *podspec.ContainerStatus(&st, "web")
	}
	image := plan.Action{Verb: plan.EnsureImage, Container: "web"}
	trouble := func(s *plantest.Given, reason string, when time.Time) *plantest.Given {
		s.In.State.Failures[image.Key()] = &plan.Failure{Reason: reason, Message: "m", At: when}
		return s
	}
	waiting := []struct {
		name, reason, message string
		at                    *plantest.Given
	}{
		{"new", "ContainerCreating", "", plantest.At(plantest.Pod("web"))},
		{"created", "ContainerCreating", "", plantest.At(plantest.Pod("web")).Has(cri.Container{ID: "w", Name: "web"})},
		{"pull failed now", "ErrImagePull", "m", trouble(plantest.At(plantest.Pod("web")), "ErrImagePull", plantest.Noon)},
		{"pull failed before", "ImagePullBackOff", `Back-off pulling image "web:1": ErrImagePull: m`, trouble(plantest.At(plantest.Pod("web")), "ErrImagePull", plantest.Ago(3*time.Second))},
		{"never pull", "ErrImageNeverPull", "m", trouble(plantest.At(plantest.Pod("web")), "ErrImageNeverPull", plantest.Ago(time.Hour))},
		{"crash loop", "CrashLoopBackOff", "back-off 10s restarting failed container=web pod=web_default(u1)", plantest.At(plantest.Pod("web")).Has(plantest.Exited("web", 1, 1, plantest.Noon))},
		{"pull fails at a restart", "ErrImagePull", "m", trouble(plantest.At(plantest.Pod("web")).Has(plantest.Exited("web", 0, 1, plantest.Noon)), "ErrImagePull", plantest.Noon)},
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
		if st := find(plantest.At(plantest.Pod("web")).Has(plantest.Exited("web", 0, 1, plantest.Noon))); st.State.Terminated == nil {
			t.Errorf("%+v", st)
		}
	})
	t.Run("restarted", func(t *testing.T) {
		st := find(plantest.At(plantest.Pod("web")).Sandbox().Has(plantest.Exited("web", 0, 3, plantest.Noon)).Has(plantest.Running("web", 1)))
		if st.RestartCount != 1 || st.LastTerminationState.Terminated == nil || st.LastTerminationState.Terminated.ExitCode != 3 || !st.Ready || !*st.Started {
			t.Errorf("%+v", st)
		}
	})
	t.Run("last state outlives its container", func(t *testing.T) {
		s := plantest.At(plantest.Pod("web")).Sandbox().Has(plantest.Running("web", 1))
		s.In.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", ContainerID: "containerd://web0",
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: "containerd://web0", Reason: "OOMKilled"}}}}
		if last := find(s).LastTerminationState.Terminated; last == nil || last.Reason != "OOMKilled" {
			t.Errorf("%+v", last)
		}
	})
	t.Run("a running container that the runtime lost", func(t *testing.T) {
		s := plantest.At(plantest.Pod("web"))
		s.In.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", ContainerID: "containerd://web0", RestartCount: 2,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		st := find(s)
		if last := st.LastTerminationState.Terminated; last == nil || last.Reason != "ContainerStatusUnknown" || last.ExitCode != 137 || st.State.Waiting == nil || st.RestartCount != 2 {
			t.Errorf("%+v", st)
		}
	})
	t.Run("messages and start errors", func(t *testing.T) {
		c := plantest.Exited("web", 0, 127, plantest.Noon)
		c.StartError = "no such file"
		s := plantest.At(plantest.Pod("web", plantest.RestartPolicy(corev1.RestartPolicyNever))).Has(c)
		if end := find(s).State.Terminated; end.Reason != "StartError" || end.Message != "no such file" {
			t.Errorf("%+v", end)
		}
	})
}

func TestConditions(t *testing.T) {
	s := plantest.At(plantest.Pod("web")).Sandbox().Has(plantest.Running("web", 0))
	s.In.Pod.Generation = 4
	old := metav1.NewTime(plantest.Ago(time.Hour))
	s.In.Pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: old},
		{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: old},
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: old},
		{Type: "example.com/mine", Status: corev1.ConditionFalse, LastTransitionTime: old},
	}
	st := status.Of(s.In, plantest.HostIP)
	if len(st.Conditions) != 6 {
		t.Fatalf("%+v", st.Conditions)
	}
	get := func(name corev1.PodConditionType) *corev1.PodCondition { return podspec.Condition(st.Conditions, name) }
	if c := get(corev1.PodReady); c.Status != corev1.ConditionTrue || !c.LastTransitionTime.Time.Equal(plantest.Noon) || c.ObservedGeneration != 4 {
		t.Errorf("a change of status is a transition: %+v", c)
	}
	if c := get(corev1.PodInitialized); !c.LastTransitionTime.Equal(&old) {
		t.Errorf("no change is none: %+v", c)
	}
	if c := get("example.com/mine"); c.Status != corev1.ConditionFalse || !c.LastTransitionTime.Equal(&old) {
		t.Errorf("what others wrote stays: %+v", c)
	}
	s.In.Pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/mine"}}
	st = status.Of(s.In, plantest.HostIP)
	if c := get(corev1.PodReady); c.Status != corev1.ConditionFalse || c.Reason != "ReadinessGatesNotReady" {
		t.Errorf("%+v", c)
	}
	if c := get(corev1.ContainersReady); c.Status != corev1.ConditionTrue {
		t.Errorf("%+v", c)
	}
}

func TestStatusIsAFixedPoint(t *testing.T) {
	for _, s := range []*plantest.Given{
		plantest.At(plantest.Pod("web", plantest.TwoContainers)), plantest.At(plantest.Pod("web")).Sandbox().Has(plantest.Running("web", 0)),
		plantest.At(plantest.Pod("web")).Sandbox().Has(plantest.Exited("web", 1, 1, plantest.Noon)),
		plantest.At(plantest.Pod("web", plantest.RestartPolicy(corev1.RestartPolicyNever))).Sandbox().Has(plantest.Exited("web", 0, 1, plantest.Noon)),
	} {
		st := status.Of(s.In, plantest.HostIP)
		s.In.Pod.Status = st
		s.In.Now = s.In.Now.Add(time.Second)
		if again := status.Of(s.In, plantest.HostIP); !status.Equal(&st, &again) {
			t.Errorf("from\n%+v\nto\n%+v", st, again)
		}
	}
}

func TestInitStatus(t *testing.T) {
	show := func(s *plantest.Given) string {
		st := status.Of(s.In, plantest.HostIP)
		var parts []string
		for _, c := range append(st.InitContainerStatuses, st.ContainerStatuses...) {
			what := "?"
			switch {
			case c.State.Running != nil:
				what = "runs"
			case c.State.Terminated != nil:
				what = c.State.Terminated.Reason
			case c.State.Waiting != nil:
				what = c.State.Waiting.Reason
			}
			if c.Ready {
				what += "+"
			}
			parts = append(parts, c.Name+":"+what)
		}
		init := podspec.Condition(st.Conditions, corev1.PodInitialized)
		return string(st.Phase) + " " + strings.Join(parts, " ") + " " + string(init.Status) + init.Message
	}
	pod := func(names ...string) *plantest.Given {
		return plantest.At(plantest.Pod("web", plantest.WithInits(names...))).Sandbox()
	}
	never := func(names ...string) *plantest.Given {
		return plantest.At(plantest.Pod("web", plantest.WithInits(names...), plantest.RestartPolicy(corev1.RestartPolicyNever))).Sandbox()
	}
	for _, c := range []struct {
		name string
		at   *plantest.Given
		want string
	}{
		{"new", pod("a", "b"), "Pending a:PodInitializing b:PodInitializing web:PodInitializing Falsecontainers with incomplete status: [a b]"},
		{"first", pod("a", "b").Has(plantest.Running("a", 0)), "Pending a:runs+ b:PodInitializing web:PodInitializing Falsecontainers with incomplete status: [a b]"},
		{"second", pod("a", "b").Has(plantest.Exited("a", 0, 0, plantest.Noon)), "Pending a:Completed+ b:PodInitializing web:PodInitializing Falsecontainers with incomplete status: [b]"},
		{"main", pod("a").Has(plantest.Exited("a", 0, 0, plantest.Noon)).Has(plantest.Running("web", 0)), "Running a:Completed+ web:runs+ True"},
		{"crash", pod("a").Has(plantest.Exited("a", 1, 1, plantest.Noon)), "Pending a:CrashLoopBackOff web:PodInitializing Falsecontainers with incomplete status: [a]"},
		{"failed", never("a").Has(plantest.Exited("a", 0, 1, plantest.Noon)), "Failed a:Error web:PodInitializing Falsecontainers with incomplete status: [a]"},
		{"done, the sidecar still runs", never("s*").Has(plantest.Running("s", 0)).Has(plantest.Exited("web", 0, 0, plantest.Noon)), "Running s:runs+ web:Completed True"},
		{"done", never("s*").Has(plantest.Exited("s", 0, 0, plantest.Noon)).Has(plantest.Exited("web", 0, 0, plantest.Noon)), "Succeeded s:Completed web:Completed True"},
	} {
		if got := show(c.at); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
