package function

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/controller/loop"
	"minik8s/internal/function/plan"
)

// instanceOf is a pod of a version, with its container running or not.
func instanceOf(name, version string, runs bool) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{plan.VersionLabel: version}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{ContainerPort: 8080}}}}}}
	if runs {
		p.Status = corev1.PodStatus{PodIP: "192.0.2.1", ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}
	}
	return p
}

// Calls get instances of the present version that accept connections, in the order in which they came, and no more each than it may have.
func TestPool(t *testing.T) {
	fn := &minik8s.Function{Spec: minik8s.FunctionSpec{Concurrency: 1, TargetConcurrency: 1, IdleSeconds: 60}}
	p := &pool{instances: map[types.UID]*instance{}, opened: func() {}}
	p.follow(fn, "2")
	accepts := make(chan func(), 10)
	look := func(_ context.Context, _ string, then func()) { accepts <- then }
	p.pod(nil, instanceOf("old", "1", true), look)
	(<-accepts)()
	p.pod(nil, instanceOf("a", "2", false), look)
	p.pod(instanceOf("a", "2", false), instanceOf("a", "2", true), look)
	type got struct {
		i   *instance
		err error
	}
	asks := func() chan got {
		out, waits := make(chan got, 1), make(chan struct{})
		go func() {
			i, _, err := p.acquire(t.Context(), func() { close(waits) })
			out <- got{i.instance, err}
		}()
		<-waits
		return out
	}
	first, second := asks(), asks()
	(<-accepts)()
	one := <-first
	if one.err != nil || one.i.pod != "a" {
		t.Fatalf("%+v", one)
	}
	select {
	case x := <-second:
		t.Fatalf("an instance with one call has got another: %+v", x)
	default:
	}
	p.release(one.i)
	if x := <-second; x.err != nil || x.i != one.i {
		t.Fatalf("%+v", x)
	}
	// It goes: it gets no more.
	leaving := instanceOf("a", "2", true)
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	p.pod(instanceOf("a", "2", true), leaving, look)
	p.release(one.i)
	third := asks()
	p.end(errStopped)
	if x := <-third; !errors.Is(x.err, errStopped) {
		t.Errorf("of a master that stops: %+v", x)
	}
	if _, _, err := p.acquire(t.Context(), nil); !errors.Is(err, errStopped) {
		t.Errorf("after it has stopped: %v", err)
	}
}

// A function that was deleted is the caller's mistake; a master that stopped is not, and another one calls again.
func TestEnded(t *testing.T) {
	key := loop.Key{Namespace: "default", Name: "f"}
	for why, stop := range map[string]func(*dispatcher){"deleted": func(d *dispatcher) { d.drop(key) }, "stopped": (*dispatcher).stop} {
		d := newDispatcher(nil, slog.New(slog.DiscardHandler), func(loop.Key) *appsv1.ReplicaSet { return nil }, func(loop.Key) bool { return true }, func(loop.Key) {})
		d.stored = func(context.Context, question) bool { return false }
		fn := &minik8s.Function{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "f"}, Spec: minik8s.FunctionSpec{Concurrency: 1, TimeoutSeconds: 60}}
		p := d.follow(fn, "1", func(*pool) {})
		done := make(chan result, 1)
		go func() { done <- d.call(context.Background(), question{function: key}) }()
		for waits := false; !waits; {
			p.mu.Lock()
			waits = len(p.waiting) == 1
			p.mu.Unlock()
		}
		stop(d)
		r := <-done
		if gone := why == "deleted"; gone && (r.fault != minik8s.FaultCaller || r.status != http.StatusNotFound || r.stopped) ||
			!gone && (r.fault != minik8s.FaultPlatform || r.status != http.StatusServiceUnavailable || !r.stopped) {
			t.Errorf("%s: %+v", why, r)
		}
	}
}

// An instance that has broken a call off gets none while connections to it may still be those of the program that has ended: until
// another container runs.
func TestBroke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pool{instances: map[types.UID]*instance{}, opened: func() {}}
		p.follow(&minik8s.Function{Spec: minik8s.FunctionSpec{Concurrency: 1, TargetConcurrency: 1, IdleSeconds: 60}}, "1")
		look := func(ctx context.Context, _ string, then func()) {
			if ctx.Err() == nil {
				then() // the kernel accepts connections all the time
			}
		}
		runs := func(container string) *corev1.Pod {
			pod := instanceOf("a", "1", true)
			pod.Status.ContainerStatuses[0].ContainerID = container
			return pod
		}
		next := func(after time.Duration) *instance {
			t.Helper()
			began := time.Now()
			i, _, err := p.acquire(t.Context(), func() {})
			if err != nil || time.Since(began) != after {
				t.Fatalf("%v, after %v, want %v", err, time.Since(began), after)
			}
			return i.instance
		}
		p.pod(nil, runs("first"), look)
		synctest.Wait()
		i := next(0)
		p.broke(i, look)
		p.release(i)
		go func() {
			time.Sleep(300 * time.Millisecond)
			p.pod(runs("first"), runs("second"), look)
		}()
		i = next(300 * time.Millisecond)
		p.broke(i, look) // its program runs on
		p.release(i)
		next(brokenFor)
	})
}

// A pod that has only the labels of an instance takes no calls, and ends nothing.
func TestPodWithoutAPort(t *testing.T) {
	p := &pool{instances: map[types.UID]*instance{}, opened: func() {}}
	p.follow(&minik8s.Function{Spec: minik8s.FunctionSpec{Concurrency: 1}}, "1")
	pod := instanceOf("a", "1", true)
	pod.Spec.Containers[0].Ports = nil
	p.pod(nil, pod, func(context.Context, string, func()) { t.Error("it is taken for an instance") })
	if len(p.instances) > 0 {
		t.Errorf("%+v", p.instances)
	}
}

// When there are to be fewer instances those with a call stay, and those that go get none; a pod that is not ready takes none.
func TestLeave(t *testing.T) {
	p := &pool{instances: map[types.UID]*instance{}, opened: func() {}}
	p.follow(&minik8s.Function{Spec: minik8s.FunctionSpec{Concurrency: 1, TargetConcurrency: 1, IdleSeconds: 60}}, "1")
	look := func(_ context.Context, _ string, then func()) { then() }
	for _, name := range []string{"a", "b", "c"} {
		p.pod(nil, instanceOf(name, "1", true), look)
	}
	acquire := func() *instance {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		i, _, err := p.acquire(ctx, func() {})
		if err != nil {
			t.Fatal(err)
		}
		return i.instance
	}
	busy, other := acquire(), acquire()
	if may, mark, unmark := p.leave(3, 5); may != 3 || len(mark) != 1 || mark[0] == busy.pod || mark[0] == other.pod || unmark != nil {
		t.Errorf("of 3 with 2 that are busy, and 2 that do not run yet: %d go, %v", may, mark)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if i, _, err := p.acquire(ctx, func() {}); err == nil {
		t.Errorf("%s is to go, and gets a call", i.pod)
	}
	if may, mark, _ := p.leave(3, 3); may != 1 || len(mark) != 1 {
		t.Errorf("of 3 with 2 that are busy: %d go, %v", may, mark)
	}
	p.stay()
	third := acquire()
	if may, _, _ := p.leave(3, 3); may != 0 {
		t.Errorf("%d of those that are busy go", may)
	}
	marked := instanceOf(third.pod, "1", true)
	marked.Annotations = map[string]string{corev1.PodDeletionCost: "-1"}
	p.pod(instanceOf(third.pod, "1", true), marked, look)
	if _, _, unmark := p.leave(3, 3); len(unmark) != 1 || unmark[0] != third.pod {
		t.Errorf("a mark that holds no more: %v", unmark)
	}
	lost := instanceOf(busy.pod, "1", true)
	lost.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	p.pod(instanceOf(busy.pod, "1", true), lost, look)
	p.release(busy)
	if i := p.instances[types.UID(busy.pod)]; i.open || i.address != "" {
		t.Errorf("of a pod that is not ready: %+v", i)
	}
}
