package kubelet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/plan/plantest"
)

func TestInitContainersInTurn(t *testing.T) {
	b := newBed(t)
	b.start()
	p := b.create(plantest.Pod("web", plantest.WithInits("first", "side*", "second")))
	stands := func(what string, n int, ok func(*corev1.ContainerStatus) bool) {
		t.Helper()
		b.api.await(t, "web", what, func(p *corev1.Pod) bool {
			return p != nil && len(p.Status.InitContainerStatuses) == 3 && ok(&p.Status.InitContainerStatuses[n])
		})
	}
	runs := func(c *corev1.ContainerStatus) bool { return c.State.Running != nil }
	stands("at the first", 0, runs)
	b.rt.Exit(string(p.UID), "first", 0, false)
	stands("with its sidecar", 1, runs)
	stands("at the second", 2, runs)
	b.restart()
	b.rt.Exit(string(p.UID), "second", 0, false)
	got := b.api.await(t, "web", "running", running)
	if c := podspec.Condition(got.Status.Conditions, corev1.PodInitialized); c.Status != corev1.ConditionTrue {
		t.Errorf("%s", statusText(got))
	}
	b.rt.Reboot()
	stands("at the first again", 0, runs)
	b.rt.Exit(string(p.UID), "first", 0, false)
	stands("at the second again", 2, runs)
	b.rt.Exit(string(p.UID), "second", 0, false)
	b.api.await(t, "web", "running again", running)
	b.delete("web")
	b.api.await(t, "web", "gone", goneNow)
	b.nothingLeft()
}

func TestAJobsPodEndsBesideItsSidecar(t *testing.T) {
	b := newBed(t)
	b.start()
	p := b.create(plantest.Pod("job", plantest.WithInits("side*"), plantest.RestartPolicy(corev1.RestartPolicyNever)))
	b.api.await(t, "job", "running", running)
	b.rt.Exit(string(p.UID), "web", 0, false)
	got := b.api.await(t, "job", "succeeded", hasPhase(corev1.PodSucceeded))
	if st := got.Status.InitContainerStatuses[0]; st.State.Terminated == nil {
		t.Errorf("%s", statusText(got))
	}
	b.sound()
}
