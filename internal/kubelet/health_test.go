package kubelet

import (
	"context"
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/plan/plantest"
)

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
	b.create(plantest.Pod("web", func(p *corev1.Pod) {
		c := &p.Spec.Containers[0]
		c.StartupProbe, c.LivenessProbe, c.ReadinessProbe = plantest.ExecProbe("startup"), plantest.ExecProbe("liveness"), plantest.ExecProbe("readiness")
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
