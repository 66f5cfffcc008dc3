package plan_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/plan"
	"minik8s/internal/kubelet/plan/plantest"
)

func TestDecideInitContainers(t *testing.T) {
	never, onFailure := plantest.RestartPolicy(corev1.RestartPolicyNever), plantest.RestartPolicy(corev1.RestartPolicyOnFailure)
	up := func(change ...func(*corev1.Pod)) *plantest.Given {
		s := plantest.At(plantest.Pod("web", change...)).Sandbox().Volumes().StatusWritten()
		for _, c := range podspec.Containers(s.In.Pod) {
			s.Image(c.Name)
		}
		return s
	}
	gone := plantest.Deleting(30*time.Second, 30)
	for _, c := range []struct {
		name string
		at   *plantest.Given
		want string
	}{
		{"a new pod begins with the first", plantest.At(plantest.Pod("web", plantest.WithInits("a", "b"))), "volumes sandbox image/a"},
		{"the first", up(plantest.WithInits("a", "b")), "start/a"},
		{"none beside it", up(plantest.WithInits("a", "b")).Has(plantest.Running("a", 0)), ""},
		{"the second", up(plantest.WithInits("a", "b")).Has(plantest.Exited("a", 0, 0, plantest.Noon)), "start/b"},
		{"then the main one", up(plantest.WithInits("a", "b")).Has(plantest.Exited("a", 0, 0, plantest.Noon)).Has(plantest.Exited("b", 0, 0, plantest.Noon)), "start/web"},
		{"and none of them again", up(plantest.WithInits("a")).Has(plantest.Exited("a", 0, 0, plantest.Noon)).Has(plantest.Exited("web", 0, 1, plantest.Noon)), "start/web"},
		{"not even if the runtime has lost it", up(plantest.WithInits("a")).Has(plantest.Running("web", 0)), ""},
		{"a failure is tried again", up(plantest.WithInits("a")).Has(plantest.Exited("a", 0, 1, plantest.Noon)), "start/a"},
		{"also on failure", up(plantest.WithInits("a"), onFailure).Has(plantest.Exited("a", 0, 1, plantest.Noon)), "start/a"},
		{"never is the end", up(plantest.WithInits("a"), never).Has(plantest.Exited("a", 0, 1, plantest.Noon)), "remove/a0"},
		{"never, but it did well", up(plantest.WithInits("a"), never).Has(plantest.Exited("a", 0, 0, plantest.Noon)), "start/web"},
		{"a new sandbox begins anew", func() *plantest.Given {
			s := up(plantest.WithInits("a")).Has(plantest.Exited("a", 0, 0, plantest.Ago(time.Minute))).Has(plantest.Exited("web", 0, 137, plantest.Ago(time.Minute)))
			s.In.View.Sandbox.ID = "next"
			return s
		}(), "start/a"},
		{"not for a clock that was set back", func() *plantest.Given {
			s := up(plantest.WithInits("a")).Has(plantest.Exited("a", 0, 0, plantest.Ago(time.Hour)))
			s.In.View.Sandbox.CreatedAt = plantest.Noon
			return s
		}(), "start/web"},
		{"a lost sandbox too", up(plantest.WithInits("a")).BrokenSandbox().Has(plantest.Exited("a", 0, 0, plantest.Noon)).Has(plantest.Exited("web", 0, 137, plantest.Noon)), "sandbox"},

		{"a sidecar first", up(plantest.WithInits("s*", "a")), "start/s"},
		{"it is not waited for to its end", up(plantest.WithInits("s*", "a")).Has(plantest.Running("s", 0)), "start/a"},
		{"one that fell is started while others run", up(plantest.WithInits("s*")).Has(plantest.Exited("s", 0, 0, plantest.Noon)).Has(plantest.Running("web", 0)), "start/s"},
		{"also in a pod that never restarts", up(plantest.WithInits("s*"), never).Has(plantest.Exited("s", 0, 1, plantest.Noon)).Has(plantest.Running("web", 0)), "start/s"},
		{"it does not keep the pod going", up(plantest.WithInits("s*", "z*"), never).Has(plantest.Running("s", 0)).Has(plantest.Running("z", 0)).Has(plantest.Exited("web", 0, 0, plantest.Noon)), "stop/z0/30"},
		{"the first is stopped last", up(plantest.WithInits("s*", "z*"), never).Has(plantest.Running("s", 0)).Has(plantest.Exited("z", 0, 0, plantest.Noon)).Has(plantest.Exited("web", 0, 0, plantest.Noon)), "stop/s0/30"},
		{"main containers are stopped first", up(plantest.WithInits("s*"), gone).Has(plantest.Running("s", 0)).Has(plantest.Running("web", 0)), "stop/web0/30"},
		{"a sidecar waits for them", up(plantest.WithInits("s*"), gone).Has(plantest.Running("s", 0)).Has(plantest.Running("web", 0)).
			InProgress(plan.Action{Verb: plan.StopContainer, Container: "web", ID: "web0", Grace: 30 * time.Second}), ""},
		{"and has a moment at least", up(plantest.WithInits("s*"), plantest.Deleting(-time.Minute, 30)).Has(plantest.Running("s", 0)), "stop/s0/2"},
		{"an orphan is stopped as one", func() *plantest.Given {
			s := up(plantest.WithInits("s*")).Has(plantest.Running("s", 0)).Has(plantest.Running("web", 0))
			s.In.Pod = nil
			return s
		}(), "stop/s0/1 stop/web0/1"},
	} {
		if got := plantest.Keys(plan.Decide(c.at.In)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
