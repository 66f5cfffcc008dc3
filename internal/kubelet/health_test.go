package kubelet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/cri"
)

func execProbe(command string) *corev1.Probe {
	return &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 1,
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{command}}}}
}

func TestTally(t *testing.T) {
	p := &corev1.Probe{SuccessThreshold: 2, FailureThreshold: 3}
	var c tally
	got := ""
	for _, answer := range "++++--+---++" {
		if c.add(answer == '+', p) {
			got += string(answer)
		} else {
			got += "."
		}
	}
	if want := ".+++.....-.+"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestProbesDue(t *testing.T) {
	all := func(p *corev1.Pod) {
		c := &p.Spec.Containers[0]
		c.StartupProbe, c.LivenessProbe, c.ReadinessProbe = execProbe("s"), execProbe("l"), execProbe("r")
	}
	yes := true
	up := func(h *health, change ...func(*corev1.Pod)) *stage {
		s := at(testPod("web", append([]func(*corev1.Pod){all}, change...)...)).sandbox().has(run("web", 0))
		if h != nil {
			s.in.mem.health["web0"] = h
		}
		return s
	}
	shown := func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", ContainerID: containerIDPrefix + "web0", Started: &yes, Ready: true}}
	}
	for _, c := range []struct {
		name, want string
		at         *stage
		ready      bool
	}{
		{"none", "", at(testPod("web")).sandbox().has(run("web", 0)), true},
		{"first the startup probe", "Startup", up(nil), false},
		{"then the others", "Liveness Readiness", up(&health{started: &yes}), false},
		{"ready", "Liveness Readiness", up(&health{started: &yes, ready: &yes}), true},
		{"after a restart of the daemon the status says so", "Liveness Readiness", up(nil, shown), true},
		{"a pod that goes is not judged any more", "Readiness", up(&health{started: &yes, ready: &yes}, deleting(30*time.Second, 30)), true},
		{"nor a container that is to be ended", "", up(&health{started: &yes, condemned: &sentence{}}), false},
		{"nor one that has ended", "", at(testPod("web", all)).sandbox().has(dead("web", 0, 1, noon)), false},
	} {
		var kinds []string
		for key := range probesDue(c.at.in) {
			kinds = append(kinds, string(key.kind))
		}
		slices.Sort(kinds)
		if got := strings.Join(kinds, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		st := statusFor(c.at.in, host).ContainerStatuses[0]
		if st.Ready != c.ready {
			t.Errorf("%s: ready %v", c.name, st.Ready)
		}
	}
}

func TestDecideCondemned(t *testing.T) {
	s := func(h sentence, change ...func(*corev1.Pod)) *stage {
		s := at(testPod("web", change...)).sandbox().volumes().image("web").settled()
		s.in.mem.health["web0"] = &health{condemned: &h}
		return s
	}
	onFailure, never := policy(corev1.RestartPolicyOnFailure), policy(corev1.RestartPolicyNever)
	for _, c := range []struct {
		name, want string
		at         *stage
		phase      corev1.PodPhase
	}{
		{"it is stopped", "stop/web0/30", s(sentence{}).has(run("web", 0)), corev1.PodRunning},
		{"by the probe's own grace", "stop/web0/5", s(sentence{grace: new(int64(5))}).has(run("web", 0)), corev1.PodRunning},
		{"and started again", "start/web", s(sentence{}, onFailure).has(dead("web", 0, 0, noon)), corev1.PodRunning},
		{"or not", "remove/web0", s(sentence{}, never).has(dead("web", 0, 137, noon)), corev1.PodFailed},
	} {
		if got := keysOf(decide(c.at.in)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if got := statusFor(c.at.in, host).Phase; got != c.phase {
			t.Errorf("%s: %s, want %s", c.name, got, c.phase)
		}
	}
}

// answers are what commands in containers of a fake runtime say, by their first word.
type answers struct {
	mu    sync.Mutex
	code  map[string]int32
	asked map[string]int
}

func (a *answers) set(command string, code int32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.code[command] = code
}

func (a *answers) exec(_ context.Context, _ cri.Container, cfg cri.ExecConfig) (int32, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked[cfg.Command[0]]++
	if code := a.code[cfg.Command[0]]; code != 0 {
		fmt.Fprintf(cfg.Stdout, "%s says no", cfg.Command[0])
		return code, nil
	}
	return 0, nil
}

func newAnswers(b *bed) *answers {
	a := &answers{code: map[string]int32{}, asked: map[string]int{}}
	b.rt.Hooks.Exec = a.exec
	return a
}

func TestProbesDecide(t *testing.T) {
	b := newBed(t)
	a := newAnswers(b)
	a.set("startup", 1)
	a.set("readiness", 1)
	b.start()
	b.create(testPod("web", func(p *corev1.Pod) {
		c := &p.Spec.Containers[0]
		c.StartupProbe, c.LivenessProbe, c.ReadinessProbe = execProbe("startup"), execProbe("liveness"), execProbe("readiness")
		c.StartupProbe.FailureThreshold, c.LivenessProbe.FailureThreshold = 100, 2
	}))
	web := func(p *corev1.Pod) *corev1.ContainerStatus {
		if p == nil || len(p.Status.ContainerStatuses) == 0 {
			return &corev1.ContainerStatus{Started: new(bool)}
		}
		return &p.Status.ContainerStatuses[0]
	}
	b.api.await(t, "web", "running and not started", func(p *corev1.Pod) bool {
		return web(p).State.Running != nil && !*web(p).Started && !web(p).Ready
	})
	if msg := b.api.awaitEvent(t, "web", "Unhealthy"); msg != "Startup probe failed: startup says no" {
		t.Error(msg)
	}
	a.set("startup", 0)
	b.api.await(t, "web", "started and not ready", func(p *corev1.Pod) bool { return *web(p).Started && !web(p).Ready })
	a.set("readiness", 0)
	b.api.await(t, "web", "ready", running)
	b.restart()
	a.set("readiness", 1)
	p := b.api.await(t, "web", "not ready", func(p *corev1.Pod) bool { return p != nil && !isReady(p) })
	if web(p).RestartCount != 0 || p.Status.Phase != corev1.PodRunning {
		t.Errorf("%s", statusText(p))
	}
	a.set("readiness", 0)
	b.api.await(t, "web", "ready again", running)
	a.set("liveness", 1)
	b.api.await(t, "web", "restarted", func(p *corev1.Pod) bool { return web(p).RestartCount == 1 })
	a.set("liveness", 0)
	if msg := b.api.awaitEvent(t, "web", "Killing"); msg != "Container web failed liveness probe, will be restarted" {
		t.Error(msg)
	}
	b.api.await(t, "web", "ready at last", running)
	b.delete("web")
	b.api.await(t, "web", "gone", goneNow)
	b.nothingLeft()
}
