package plan_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/plan"
	"minik8s/internal/kubelet/plan/plantest"
)

func TestDecide(t *testing.T) {
	start := plan.Action{Verb: plan.StartContainer, Container: "web"}
	cases := []struct {
		name string
		at   *plantest.Given
		want string // actions
		wake time.Duration
		done bool
	}{
		{"a new pod begins all stages at once", plantest.At(plantest.Pod("web", plantest.TwoContainers)), "volumes sandbox image/web image/app", 0, false},
		{"nothing before admission", func() *plantest.Given { s := plantest.At(plantest.Pod("web")); s.In.State.Admitted = false; return s }(), "", 0, false},
		{"no start before the sandbox", plantest.At(plantest.Pod("web")).Volumes().Image("web").InProgress(plan.Action{Verb: plan.MakeSandbox}), "", 0, false},
		{"no start before the volumes", plantest.At(plantest.Pod("web")).Sandbox().Image("web").InProgress(plan.Action{Verb: plan.SetUpVolumes}), "", 0, false},
		{"start when all is there", plantest.At(plantest.Pod("web", plantest.TwoContainers)).Sandbox().Volumes().Image("web").Image("app"), "start/web start/app", 0, false},
		{"one image does not hold up the other", plantest.At(plantest.Pod("web", plantest.TwoContainers)).Sandbox().Volumes().Image("web"), "start/web image/app", 0, false},
		{"a start under way is not begun again", plantest.At(plantest.Pod("web")).Sandbox().Volumes().Image("web").InProgress(start), "", 0, false},
		{"a half-made container is made anew", plantest.At(plantest.Pod("web")).Sandbox().Volumes().Has(cri.Container{ID: "w0", Name: "web"}), "remove/w0", 0, false},
		{"but not while it is being made", plantest.At(plantest.Pod("web")).Sandbox().Volumes().Has(cri.Container{ID: "w0", Name: "web"}).InProgress(start), "", 0, false},
		{"a running pod needs nothing", plantest.At(plantest.Pod("web")).Sandbox().Has(plantest.Running("web", 0)), "", 0, false},
		{"the first restart is at once", plantest.At(plantest.Pod("web")).Sandbox().Volumes().Image("web").Has(plantest.Exited("web", 0, 1, plantest.Noon)), "start/web", 0, false},
		{"the second waits", plantest.At(plantest.Pod("web")).Sandbox().Volumes().Has(plantest.Exited("web", 1, 1, plantest.Ago(3*time.Second))), "", 7 * time.Second, false},
		{"the third waits longer", plantest.At(plantest.Pod("web")).Sandbox().Volumes().Has(plantest.Exited("web", 2, 1, plantest.Ago(3*time.Second))), "", 17 * time.Second, false},
		{"a good run ends the back-off", plantest.At(plantest.Pod("web")).Sandbox().Volumes().Image("web").
			Has(func() cri.Container {
				c := plantest.Exited("web", 7, 1, plantest.Noon)
				c.CreatedAt = plantest.Ago(time.Hour)
				return c
			}()), "start/web", 0, false},
		{"never is not restarted, it ends", plantest.At(plantest.Pod("web", plantest.RestartPolicy(corev1.RestartPolicyNever))).Sandbox().StatusWritten().Has(plantest.Exited("web", 0, 1, plantest.Noon)), "remove/web0", 0, false},
		{"not before the status is known", plantest.At(plantest.Pod("web", plantest.RestartPolicy(corev1.RestartPolicyNever))).Sandbox().Has(plantest.Exited("web", 0, 1, plantest.Noon)), "", 0, false},
		{"on failure restarts failures only", plantest.At(plantest.Pod("web", plantest.RestartPolicy(corev1.RestartPolicyOnFailure), plantest.TwoContainers)).Sandbox().Volumes().Image("web").
			Has(plantest.Exited("web", 0, 1, plantest.Noon)).Has(plantest.Exited("app", 0, 0, plantest.Noon)), "start/web", 0, false},
		{"a lost sandbox is made again before the restart", plantest.At(plantest.Pod("web")).BrokenSandbox().Volumes().Has(plantest.Exited("web", 0, 137, plantest.Noon)), "sandbox image/web", 0, false},
		{"what runs in a lost sandbox is stopped first", plantest.At(plantest.Pod("web")).BrokenSandbox().Volumes().Has(plantest.Running("web", 0)), "stop/web0/30", 0, false},
		{"a failed step waits", plantest.At(plantest.Pod("web")).Volumes().Image("web").Failed(plan.Action{Verb: plan.MakeSandbox}, plantest.Noon.Add(5*time.Second)), "", 5 * time.Second, false},
		{"old dead containers go, the last but one stays", plantest.At(plantest.Pod("web")).Sandbox().Has(plantest.Exited("web", 0, 1, plantest.Ago(time.Hour))).
			Has(plantest.Exited("web", 1, 1, plantest.Ago(time.Hour))).Has(plantest.Running("web", 2)), "remove/web0", 0, false},
		{"of two that run the older is stopped", plantest.At(plantest.Pod("web")).Sandbox().Has(plantest.Running("web", 0)).Has(plantest.Running("web", 1)), "stop/web0/1", 0, false},

		{"a deleted pod is stopped, all at once", plantest.At(plantest.Pod("web", plantest.TwoContainers, plantest.Deleting(30*time.Second, 30))).Sandbox().Has(plantest.Running("web", 0)).Has(plantest.Running("app", 0)), "stop/web0/30 stop/app0/30", 0, false},
		{"what is left of the grace", plantest.At(plantest.Pod("web", plantest.Deleting(10*time.Second, 30))).Sandbox().Has(plantest.Running("web", 0)), "stop/web0/10", 0, false},
		{"no grace is left", plantest.At(plantest.Pod("web", plantest.Deleting(-time.Minute, 30))).Sandbox().Has(plantest.Running("web", 0)), "stop/web0/0", 0, false},
		{"a stop under way goes on", plantest.At(plantest.Pod("web", plantest.Deleting(30*time.Second, 30))).Sandbox().Has(plantest.Running("web", 0)).
			InProgress(plan.Action{Verb: plan.StopContainer, ID: "web0", Grace: 30 * time.Second}), "", 0, false},
		{"a shorter grace overtakes", plantest.At(plantest.Pod("web", plantest.Deleting(5*time.Second, 5))).Sandbox().Has(plantest.Running("web", 0)).
			InProgress(plan.Action{Verb: plan.StopContainer, ID: "web0", Grace: 30 * time.Second}), "stop/web0/5", 0, false},
		{"it is not taken apart while a start is under way", plantest.At(plantest.Pod("web", plantest.Deleting(30*time.Second, 30))).Sandbox().StatusWritten().InProgress(start), "", 0, false},
		{"nor while the sandbox is being made", plantest.At(plantest.Pod("web", plantest.Deleting(30*time.Second, 30))).StatusWritten().InProgress(plan.Action{Verb: plan.MakeSandbox}), "", 0, false},
		{"containers go before the sandbox", plantest.At(plantest.Pod("web", plantest.Deleting(30*time.Second, 30))).Sandbox().StatusWritten().Has(plantest.Exited("web", 0, 0, plantest.Noon)), "remove/web0", 0, false},
		{"then the sandbox", plantest.At(plantest.Pod("web", plantest.Deleting(30*time.Second, 30))).Sandbox().StatusWritten(), "removeSandbox", 0, false},
		{"then the volumes", plantest.At(plantest.Pod("web", plantest.Deleting(30*time.Second, 30))).StatusWritten(), "tearDown", 0, false},
		{"then the object", plantest.At(plantest.Pod("web", plantest.Deleting(30*time.Second, 30))).StatusWritten().TornDown(), "delete", 0, false},
		{"then nothing is left", func() *plantest.Given {
			s := plantest.At(plantest.Pod("web", plantest.Deleting(30*time.Second, 30))).StatusWritten().TornDown()
			s.In.State.ObjectDeleted = true
			return s
		}(), "", 0, true},
		{"an orphan is stopped soon", plantest.At(nil).Sandbox().Has(plantest.Running("web", 0)), "stop/web0/1", 0, false},
		{"an orphan needs no status", plantest.At(nil).Sandbox().Has(plantest.Exited("web", 0, 0, plantest.Noon)), "remove/web0", 0, false},
		{"an orphan is done without the API", plantest.At(nil).TornDown(), "", 0, true},
		{"a finished pod stays in the API", func() *plantest.Given {
			s := plantest.At(plantest.Pod("web", plantest.RestartPolicy(corev1.RestartPolicyNever))).StatusWritten()
			s.In.Pod.Status.Phase = corev1.PodSucceeded
			s.In.State.TornDown = true
			return s
		}(), "", 0, false},
		{"a rejected pod starts nothing", func() *plantest.Given {
			s := plantest.At(plantest.Pod("web")).StatusWritten()
			s.In.State.Admitted, s.In.State.Rejected = false, &plan.Rejection{"OutOfcpu", "x"}
			return s
		}(), "tearDown", 0, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := plan.Decide(c.at.In)
			var keys []string
			for _, a := range p.Actions {
				keys = append(keys, a.Key())
			}
			if got := strings.Join(keys, " "); got != c.want {
				t.Errorf("actions %q, want %q", got, c.want)
			}
			wake := time.Duration(0)
			if !p.Wake.IsZero() {
				wake = p.Wake.Sub(plantest.Noon)
			}
			if wake != c.wake || p.Done != c.done {
				t.Errorf("wake in %s, want %s; done %v, want %v", wake, c.wake, p.Done, c.done)
			}
		})
	}
}

func TestActiveDeadlineIsPlanned(t *testing.T) {
	s := plantest.At(plantest.Pod("web")).Sandbox().Has(plantest.Running("web", 0))
	seconds, began := int64(90), metav1.NewTime(plantest.Ago(time.Minute))
	s.In.Pod.Spec.ActiveDeadlineSeconds, s.In.Pod.Status.StartTime = &seconds, &began
	if p := plan.Decide(s.In); len(p.Actions) > 0 || p.Wake.Sub(plantest.Noon) != 30*time.Second {
		t.Errorf("%+v", p)
	}
	s.In.Now = plantest.Noon.Add(30 * time.Second)
	if p := plan.Decide(s.In); len(p.Actions) != 1 || p.Actions[0].Verb != plan.StopContainer {
		t.Errorf("%+v", p)
	}
}
