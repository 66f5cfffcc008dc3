package kubelet

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/client"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/cri/fake"
)

// bed is a kubelet on a fake runtime and a real registry.
type bed struct {
	t    *testing.T
	api  *testAPI
	rt   *fake.Runtime // nil on a real one
	cri  cri.Runtime
	cfg  Config
	k    *Kubelet
	stop func()
}

func newBed(t *testing.T) *bed {
	b := &bed{t: t, api: newTestAPI(t), rt: fake.New("web:1", "app:1")}
	b.cri = b.rt
	level := slog.LevelError
	if testing.Verbose() {
		level = slog.LevelDebug
	}
	b.cfg = Config{NodeName: "node1", NodeIP: netip.MustParseAddr("192.0.2.1"), DataDir: t.TempDir(),
		Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: level}))}
	return b
}

// start runs a kubelet until the test ends or stop is called.
func (b *bed) start() {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	b.k = New(b.cfg, b.api.node, b.cri)
	ready, done := make(chan struct{}), make(chan error, 1)
	var once sync.Once
	go func() { done <- b.k.Run(ctx, func() { once.Do(func() { close(ready) }) }) }()
	var stopped sync.Once
	b.stop = func() {
		stopped.Do(func() {
			cancel()
			if err := <-done; err != nil {
				b.t.Errorf("Run: %v", err)
			}
		})
	}
	b.t.Cleanup(b.stop)
	select {
	case <-ready:
	case err := <-done:
		done <- nil // for stop
		b.t.Fatalf("Run ended: %v", err)
	case <-time.After(10 * time.Second):
		b.t.Fatal("the kubelet does not get ready")
	}
}

// restart is a kill and a start of the daemon.
func (b *bed) restart() {
	b.stop()
	b.rt.Restart()
	b.start()
}

func (b *bed) create(pod *corev1.Pod) *corev1.Pod {
	b.t.Helper()
	obj, err := b.api.Create(b.t.Context(), pod, client.WriteOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	return obj.(*corev1.Pod)
}

func (b *bed) delete(name string) {
	b.t.Helper()
	if _, err := b.api.Delete(b.t.Context(), podKey(name), nil); err != nil {
		b.t.Fatal(err)
	}
}

func running(p *corev1.Pod) bool {
	return p != nil && p.Status.Phase == corev1.PodRunning && isReady(p)
}

func isReady(p *corev1.Pod) bool {
	c := podspec.Condition(p.Status.Conditions, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

func goneNow(p *corev1.Pod) bool { return p == nil }

// nothingLeft checks that the runtime and the disk hold nothing, once the workers are done.
func (b *bed) nothingLeft() {
	b.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		b.k.mu.Lock()
		n := len(b.k.workers)
		b.k.mu.Unlock()
		if n == 0 {
			break
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("%d workers are left", n)
		}
		time.Sleep(time.Millisecond) // no event says that a worker has ended
	}
	pods, err := b.cri.Pods(context.WithoutCancel(b.t.Context()))
	if err != nil || len(pods) > 0 {
		b.t.Errorf("the runtime still holds %+v, %v", pods, err)
	}
	for _, dir := range []string{"pods", "pods-logs"} {
		entries, err := os.ReadDir(filepath.Join(b.cfg.DataDir, dir))
		if err == nil && len(entries) > 0 {
			b.t.Errorf("%s still holds %v", dir, entries)
		}
	}
	b.sound()
}

func (b *bed) sound() {
	b.t.Helper()
	if b.rt == nil {
		return
	}
	for _, v := range b.rt.Violations() {
		b.t.Error(v)
	}
}
