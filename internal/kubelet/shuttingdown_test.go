package kubelet

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/plan/plantest"
	"minik8s/internal/kubelet/shutdown"
)

// shutter is a machine that shuts down when the test says so.
type shutter struct {
	words    chan bool
	released chan struct{}
}

func (m *shutter) Next(ctx context.Context) (bool, error) {
	select {
	case down := <-m.words:
		return down, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}
func (m *shutter) ShuttingDown(context.Context) (bool, error) { return false, nil }
func (m *shutter) RaiseMaxDelay(_ context.Context, wish time.Duration) (time.Duration, error) {
	return wish, nil
}
func (m *shutter) Inhibit(context.Context, string, string) (io.Closer, error) { return held{m}, nil }
func (m *shutter) Close()                                                     {}

// held is the lock of a machine.
type held struct{ m *shutter }

func (h held) Close() error { h.m.released <- struct{}{}; return nil }

// When the machine shuts down, the Node is not ready, pods end and say why, and new ones are refused. When it does not
// after all, the Node takes pods again.
func TestMachineShutsDown(t *testing.T) {
	b := newBed(t)
	m := &shutter{words: make(chan bool), released: make(chan struct{}, 9)}
	b.cfg.Shutdown = shutdown.Config{Periods: shutdown.Periods{All: time.Minute, Critical: 30 * time.Second}, Log: b.cfg.Log,
		Open: func(context.Context) (shutdown.Conn, error) { return m, nil }}
	b.rt.Hooks.Pull = func(ctx context.Context, _ string, _ func(cri.Progress)) (*cri.Image, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	b.start()
	b.create(plantest.Pod("web"))
	b.create(plantest.Pod("dns", func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-node-critical" }))
	b.create(plantest.Pod("waits", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "nowhere:1" }))
	b.api.await(t, "web", "running", running)
	b.api.await(t, "dns", "running", running)
	b.api.await(t, "waits", "waiting for its image", func(p *corev1.Pod) bool { return len(p.Status.ContainerStatuses) > 0 }) // admitted

	m.words <- true
	b.api.awaitNode(t, "not ready", func(n *corev1.Node) bool {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return c.Status == corev1.ConditionFalse && c.Reason == "KubeletNotReady" && c.Message == "node is shutting down"
			}
		}
		return false
	})
	for _, name := range []string{"web", "dns", "waits"} {
		p := b.api.await(t, name, "failed", hasPhase(corev1.PodFailed))
		c := podspec.Condition(p.Status.Conditions, corev1.DisruptionTarget)
		if p.Status.Reason != "Terminated" || !strings.Contains(p.Status.Message, "imminent node shutdown") || c == nil || c.Status != corev1.ConditionTrue {
			t.Errorf("%s", statusText(p))
		}
	}
	select {
	case <-m.released:
	case <-time.After(10 * time.Second):
		t.Fatal("the machine waits for pods that have ended")
	}
	b.create(plantest.Pod("late"))
	p := b.api.await(t, "late", "refused", hasPhase(corev1.PodFailed))
	if p.Status.Reason != "NodeShutdown" || p.Status.Message != "Pod was rejected: Pod was rejected as the node is shutting down." {
		t.Errorf("%s", statusText(p))
	}

	m.words <- false
	b.api.awaitNode(t, "ready again", nodeReady)
	b.create(plantest.Pod("again"))
	b.api.await(t, "again", "running", running)

	// An ordinary end of the daemon is none of the machine, and the next start finds the Node ready.
	b.restart()
	b.api.awaitNode(t, "ready", nodeReady)
	if p := b.api.await(t, "again", "running", running); p.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Error("the pod was ended")
	}
	b.sound()
}
