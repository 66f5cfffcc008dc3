package kubelet

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/kubelet/plan/plantest"
)

// gate is Policies that notes what it is told, and lets pods start when a test says so.
type gate struct {
	open chan struct{}

	mu   sync.Mutex
	said []string
}

func (g *gate) say(text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := len(g.said); n == 0 || g.said[n-1] != text { // each container asks
		g.said = append(g.said, text)
	}
}

func (g *gate) Admit(ctx context.Context, pod *corev1.Pod, addresses []netip.Addr) bool {
	g.say("admit " + pod.Name)
	if len(addresses) == 0 {
		g.say("without an address")
	}
	select {
	case <-g.open:
	case <-ctx.Done():
	}
	return true
}

func (g *gate) Release(uid types.UID) { g.say("release") }

// No process of a pod runs before its policies are in force, and its addresses are released when it has them no more.
func TestPoliciesComeFirst(t *testing.T) {
	b := newBed(t)
	g := &gate{open: make(chan struct{})}
	b.cfg.Policies = g
	b.start()
	b.create(plantest.Pod("a"))
	b.api.await(t, "a", "has an address", func(p *corev1.Pod) bool { return p.Status.PodIP != "" })
	pods, err := b.cri.Pods(t.Context())
	if err != nil || len(pods) != 1 {
		t.Fatal(pods, err)
	}
	for _, c := range pods[0].Containers {
		if !c.StartedAt.IsZero() {
			t.Errorf("%s runs before the pod is admitted", c.Name)
		}
	}
	close(g.open)
	b.api.await(t, "a", "running", running)
	b.delete("a")
	b.api.await(t, "a", "gone", goneNow)
	b.nothingLeft()
	g.mu.Lock()
	defer g.mu.Unlock()
	if want := []string{"admit a", "release"}; !slices.Equal(g.said, want) {
		t.Errorf("it was told %q, want %q", g.said, want)
	}
}
