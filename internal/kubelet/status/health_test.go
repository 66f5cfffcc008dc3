package status_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/plan"
	"minik8s/internal/kubelet/plan/plantest"
	"minik8s/internal/kubelet/status"
)

func TestProbes(t *testing.T) {
	all := func(p *corev1.Pod) {
		c := &p.Spec.Containers[0]
		c.StartupProbe, c.LivenessProbe, c.ReadinessProbe = plantest.ExecProbe("s"), plantest.ExecProbe("l"), plantest.ExecProbe("r")
	}
	yes := true
	up := func(h *plan.Health, change ...func(*corev1.Pod)) *plantest.Given {
		s := plantest.At(plantest.Pod("web", append([]func(*corev1.Pod){all}, change...)...)).Sandbox().Has(plantest.Running("web", 0))
		if h != nil {
			s.In.State.Health["web0"] = h
		}
		return s
	}
	shown := func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", ContainerID: cri.ContainerIDPrefix + "web0", Started: &yes, Ready: true}}
	}
	for _, c := range []struct {
		name, want string
		at         *plantest.Given
		ready      bool
	}{
		{"none", "", plantest.At(plantest.Pod("web")).Sandbox().Has(plantest.Running("web", 0)), true},
		{"first the startup probe", "Startup", up(nil), false},
		{"then the others", "Liveness Readiness", up(&plan.Health{Started: &yes}), false},
		{"ready", "Liveness Readiness", up(&plan.Health{Started: &yes, Ready: &yes}), true},
		{"after a restart of the daemon the status says so", "Liveness Readiness", up(nil, shown), true},
		{"a pod that goes is not judged any more", "Readiness", up(&plan.Health{Started: &yes, Ready: &yes}, plantest.Deleting(30*time.Second, 30)), true},
		{"nor a container that is to be ended", "", up(&plan.Health{Started: &yes, Kill: &plan.KillOrder{}}), false},
		{"nor one that has ended", "", plantest.At(plantest.Pod("web", all)).Sandbox().Has(plantest.Exited("web", 0, 1, plantest.Noon)), false},
	} {
		var kinds []string
		for key := range plan.Probes(c.at.In) {
			kinds = append(kinds, string(key.Kind))
		}
		slices.Sort(kinds)
		if got := strings.Join(kinds, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		st := status.Of(c.at.In, plantest.HostIP).ContainerStatuses[0]
		if st.Ready != c.ready {
			t.Errorf("%s: ready %v", c.name, st.Ready)
		}
	}
}

func TestKilledForItsProbe(t *testing.T) {
	s := func(h plan.KillOrder, change ...func(*corev1.Pod)) *plantest.Given {
		s := plantest.At(plantest.Pod("web", change...)).Sandbox().Volumes().Image("web").StatusWritten()
		s.In.State.Health["web0"] = &plan.Health{Kill: &h}
		return s
	}
	onFailure, never := plantest.RestartPolicy(corev1.RestartPolicyOnFailure), plantest.RestartPolicy(corev1.RestartPolicyNever)
	for _, c := range []struct {
		name, want string
		at         *plantest.Given
		phase      corev1.PodPhase
	}{
		{"it is stopped", "stop/web0/30", s(plan.KillOrder{}).Has(plantest.Running("web", 0)), corev1.PodRunning},
		{"by the probe's own grace", "stop/web0/5", s(plan.KillOrder{Grace: new(int64(5))}).Has(plantest.Running("web", 0)), corev1.PodRunning},
		{"and started again", "start/web", s(plan.KillOrder{}, onFailure).Has(plantest.Exited("web", 0, 0, plantest.Noon)), corev1.PodRunning},
		{"or not", "remove/web0", s(plan.KillOrder{}, never).Has(plantest.Exited("web", 0, 137, plantest.Noon)), corev1.PodFailed},
	} {
		if got := plantest.Keys(plan.Decide(c.at.In)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if got := status.Of(c.at.In, plantest.HostIP).Phase; got != c.phase {
			t.Errorf("%s: %s, want %s", c.name, got, c.phase)
		}
	}
}
