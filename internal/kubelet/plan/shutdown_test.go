package plan_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/plan"
	"minik8s/internal/kubelet/plan/plantest"
)

func shutdown(s *plantest.Given, within, ago time.Duration) *plantest.Given {
	s.In.State.Shutdown = &plan.Shutdown{At: plantest.Ago(ago), Within: within}
	return s
}

// A pod ends within its own grace period, but within what the machine's shutdown has left, whatever it ends for.
func TestShutdownIsPlanned(t *testing.T) {
	at := func(change ...func(*corev1.Pod)) *plantest.Given {
		return plantest.At(plantest.Pod("web", change...)).Sandbox().Has(plantest.Running("web", 0))
	}
	never := plantest.RestartPolicy(corev1.RestartPolicyNever)
	longer := plan.Action{Verb: plan.StopContainer, ID: "web0", Grace: 30 * time.Second}
	for _, c := range []struct {
		name string
		at   *plantest.Given
		want string
	}{
		{"its own grace", shutdown(at(), time.Minute, 0), "stop/web0/30"},
		{"the machine waits less", shutdown(at(), 20*time.Second, 0), "stop/web0/20"},
		{"what is left of that", shutdown(at(), 20*time.Second, 5*time.Second), "stop/web0/15"},
		{"nothing is left", shutdown(at(), 20*time.Second, time.Minute), "stop/web0/0"},
		{"a pod that is being deleted gets no longer", shutdown(at(plantest.Deleting(30*time.Second, 30)).InProgress(longer), 10*time.Second, 0), "stop/web0/10"},
		{"but its own time if that is shorter", shutdown(at(plantest.Deleting(3*time.Second, 3)), 10*time.Second, 0), "stop/web0/3"},
		{"it is being stopped", shutdown(at().InProgress(plan.Action{Verb: plan.StopContainer, ID: "web0", Grace: 20 * time.Second}), 20*time.Second, 0), ""},
		{"nothing starts any more", shutdown(plantest.At(plantest.Pod("web")).Sandbox().Volumes().Image("web"), time.Minute, 0), ""},
		{"nothing restarts", shutdown(plantest.At(plantest.Pod("web")).Sandbox().Volumes().Image("web").Has(plantest.Exited("web", 0, 1, plantest.Ago(time.Hour))), time.Minute, 0), ""},
		{"it is taken apart when the API knows", shutdown(plantest.At(plantest.Pod("web", never)).Sandbox().StatusWritten().Has(plantest.Exited("web", 0, 0, plantest.Noon)), time.Minute, 0), "remove/web0"},
	} {
		if got := plantest.Keys(plan.Decide(c.at.In)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
