package plan_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/plan"
	"minik8s/internal/kubelet/plan/plantest"
)

func TestDecideEphemeralContainers(t *testing.T) {
	never := plantest.RestartPolicy(corev1.RestartPolicyNever)
	share := func(p *corev1.Pod) { p.Spec.ShareProcessNamespace = new(true) }
	up := func(change ...func(*corev1.Pod)) *plantest.Given {
		s := plantest.At(plantest.Pod("web", change...)).Sandbox().Volumes().StatusWritten()
		for _, c := range podspec.AllContainers(s.In.Pod) {
			s.Image(c.Name)
		}
		return s
	}
	over := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}
	on := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for _, c := range []struct {
		name string
		at   *plantest.Given
		want string
	}{
		{"beside the others", up(plantest.WithDebug("d")).Has(plantest.Running("web", 0)), "start/d"},
		{"several at once", up(plantest.WithDebug("d", "e")).Has(plantest.Running("web", 0)), "start/d start/e"},
		{"its image first", plantest.At(plantest.Pod("web", plantest.WithDebug("d"))).Sandbox().Volumes().Has(plantest.Running("web", 0)), "image/d"},
		{"its volumes first, after a start of the daemon", plantest.At(plantest.Pod("web", plantest.WithDebug("d"))).Sandbox().Image("d").Has(plantest.Running("web", 0)), "volumes"},
		{"while init containers run", up(plantest.WithInits("a"), plantest.WithDebug("d")).Has(plantest.Running("a", 0)), "start/d"},
		{"once", up(plantest.WithDebug("d")).Has(plantest.Running("web", 0)).Has(plantest.Running("d", 0)), ""},
		{"not again after a failure", up(plantest.WithDebug("d")).Has(plantest.Running("web", 0)).Has(plantest.Exited("d", 0, 1, plantest.Noon)), ""},
		{"nor if the runtime has lost its end", up(plantest.WithDebug("d"), plantest.Ran("d", over)).Has(plantest.Running("web", 0)), ""},
		{"nor if it has lost the run", up(plantest.WithDebug("d"), plantest.Ran("d", on)).Has(plantest.Running("web", 0)), ""},
		{"nor in a new sandbox", func() *plantest.Given {
			s := up(plantest.WithDebug("d")).Has(plantest.Running("web", 0)).Has(plantest.Exited("d", 0, 137, plantest.Noon))
			s.In.View.Sandbox.ID = "next"
			return s
		}(), ""},
		{"a half-made one is made anew", up(plantest.WithDebug("d")).Has(plantest.Running("web", 0)).Has(cri.Container{ID: "d0", Name: "d"}), "remove/d0"},
		{"with its target", up(plantest.WithDebug("d>web")).Has(plantest.Running("web", 0)), "start/d"},
		{"not without its target", up(plantest.WithDebug("d>web")).Has(plantest.Exited("web", 3, 1, plantest.Noon)), ""},
		{"its image is had meanwhile", plantest.At(plantest.Pod("web", plantest.WithDebug("d>web"))).Sandbox().Volumes().Has(plantest.Exited("web", 3, 1, plantest.Noon)), "image/d"},
		{"where all share their processes it needs none", up(plantest.WithDebug("d>web"), share).Has(plantest.Exited("web", 3, 1, plantest.Noon)), "start/d"},
		{"it does not keep the pod going", up(plantest.WithDebug("d"), never).Has(plantest.Running("d", 0)).Has(plantest.Exited("web", 0, 0, plantest.Noon)), "stop/d0/30"},
		{"it ends with the others", up(plantest.WithDebug("d"), plantest.WithInits("s*"), plantest.Deleting(30*time.Second, 30)).
			Has(plantest.Running("s", 0)).Has(plantest.Running("web", 0)).Has(plantest.Running("d", 0)), "stop/web0/30 stop/d0/30"},
		{"it is not begun in a pod that ends", up(plantest.WithDebug("d"), plantest.Deleting(30*time.Second, 30)).Has(plantest.Running("web", 0)), "stop/web0/30"},
	} {
		if got := plantest.Keys(plan.Decide(c.at.In)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
