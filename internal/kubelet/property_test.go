package kubelet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api/podspec"
	"minik8s/internal/client"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/cri/fake"
	"minik8s/internal/kubelet/plan/plantest"
)

// world is one worker, driven by hand: its clock, the order in which its actions end, and how they
// end, are a random generator's.
type world struct {
	t    *testing.T
	rnd  *rand.Rand
	api  *testAPI
	rt   *fake.Runtime
	k    *Kubelet
	w    *worker
	now  time.Time
	uid  types.UID // of the pod
	done bool
	log  []string

	mu    sync.Mutex
	gates []*door
	open  bool // nothing fails or waits any more

	counts map[string]int32
	inits  bool              // the pod has an init container and a sidecar
	once   map[string]string // the one container of each ephemeral container
}

// door is a call of the runtime that waits to be told how to go on.
type door struct {
	call, name string
	how        chan error // nil: do it
	after      error      // what to return though it was done
}

var errInjected = errors.New("injected")

func newWorld(t *testing.T, seed uint64) *world {
	x := &world{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), api: newTestAPI(t), rt: fake.New("web:1", "app:1"),
		now: time.Now().Truncate(time.Second), counts: map[string]int32{}, once: map[string]string{}}
	x.rt.Now = func() time.Time { return x.clock() }
	afters := map[string]error{}
	x.rt.Hooks.Before = func(ctx context.Context, call, _, name string) error {
		x.mu.Lock()
		if x.open {
			x.mu.Unlock()
			return nil
		}
		g := &door{call: call, name: name, how: make(chan error, 1)}
		x.gates = append(x.gates, g)
		x.mu.Unlock()
		err := <-g.how
		x.mu.Lock()
		afters[call+name] = g.after
		x.mu.Unlock()
		return err
	}
	x.rt.Hooks.After = func(_ context.Context, call, _, name string) error {
		x.mu.Lock()
		defer x.mu.Unlock()
		err := afters[call+name]
		delete(afters, call+name)
		return err
	}
	x.k = New(Config{NodeName: "node1", NodeIP: netip.MustParseAddr("192.0.2.1"), DataDir: t.TempDir(), Now: x.clock}, x.api.node, x.rt)
	x.k.reset()
	ctx, cancel := context.WithCancel(context.Background())
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		x.k.services.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-followed })
	return x
}

func (x *world) clock() time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.now
}

func (x *world) note(format string, args ...any) {
	x.log = append(x.log, fmt.Sprintf(format, args...))
}

// boot is the start of the daemon: a worker that remembers nothing.
func (x *world) boot() {
	pods, err := x.rt.Pods(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	var view cri.Pod
	if len(pods) > 0 {
		view = pods[0]
	}
	x.w = newWorker(x.k, x.uid, view)
	x.k.workers[x.w.uid] = x.w
	x.see()
}

// see brings the API's object to the worker, as the watch would.
func (x *world) see() {
	pod := x.api.pod(x.t, "web")
	x.w.send(func(b *inbox) {
		if pod == nil {
			b.objectDeleted = true
			return
		}
		b.take(pod)
	})
}

// quiet waits until all that was begun has ended or waits at a gate.
func (x *world) quiet() {
	for {
		x.w.mu.Lock()
		landed := len(x.w.box.results)
		x.w.mu.Unlock()
		x.mu.Lock()
		waiting := len(x.gates)
		x.mu.Unlock()
		want := len(x.w.state.InProgress)
		if x.w.writing {
			want++
		}
		if landed+waiting == want {
			return
		}
		runtime.Gosched()
	}
}

func (x *world) step() {
	if x.done {
		return
	}
	if _, done := x.w.step(x.t.Context()); done {
		x.done = true
	}
	x.quiet()
	x.check()
}

// release lets one call go on, well or badly.
func (x *world) release() {
	x.mu.Lock()
	if len(x.gates) == 0 {
		x.mu.Unlock()
		return
	}
	i := x.rnd.IntN(len(x.gates))
	g := x.gates[i]
	x.gates = slices.Delete(x.gates, i, i+1)
	x.mu.Unlock()
	x.open1(g)
	x.quiet()
}

func (x *world) open1(g *door) {
	switch n := x.rnd.IntN(10); {
	case n == 0:
		x.note("%s %s fails", g.call, g.name)
		g.how <- errInjected
	case n == 1:
		x.note("%s %s fails, done", g.call, g.name)
		g.after = errInjected
		g.how <- nil
	case n == 2 && g.call == "StartContainer":
		x.note("%s %s: no such command", g.call, g.name)
		g.how <- &cri.StartError{Message: "no such command", ExitCode: 127}
	default:
		x.note("%s %s", g.call, g.name)
		g.how <- nil
	}
}

// crash kills the daemon: calls under way are done or not, nobody hears.
func (x *world) crash() {
	x.note("crash")
	for {
		x.mu.Lock()
		gates := x.gates
		x.gates = nil
		x.mu.Unlock()
		for _, g := range gates {
			if x.rnd.IntN(2) == 0 {
				g.how <- errInjected
				continue
			}
			g.how <- nil
		}
		x.quiet()
		x.mu.Lock()
		left := len(x.gates)
		x.mu.Unlock()
		if left == 0 {
			break
		}
	}
	x.boot()
}

// check holds what must be true at all times.
func (x *world) check() {
	x.t.Helper()
	if v := x.rt.Violations(); len(v) > 0 {
		x.fatal("%s", v)
	}
	pod := x.api.pod(x.t, "web")
	if pod == nil {
		return
	}
	x.checkOrder()
	for _, st := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if st.RestartCount < x.counts[st.Name] {
			x.fatal("the restart count of %s fell from %d to %d", st.Name, x.counts[st.Name], st.RestartCount)
		}
		x.counts[st.Name] = st.RestartCount
	}
	for _, st := range pod.Status.EphemeralContainerStatuses {
		if id := x.once[st.Name]; st.RestartCount != 0 || id != "" && id != st.ContainerID {
			x.fatal("the ephemeral container %s was run again: %s, then %s", st.Name, id, st.ContainerID)
		}
		x.once[st.Name] = st.ContainerID
	}
	if podspec.Finished(pod.Status.Phase) {
		view, err := x.rt.Pod(x.t.Context(), string(x.uid))
		if err != nil {
			x.fatal("%v", err)
		}
		for _, c := range view.Containers {
			if c.State == cri.Running {
				x.fatal("the pod is %s, but %s runs", pod.Status.Phase, c.Name)
			}
		}
	}
}

// checkOrder: no main container runs in a sandbox for which the init container has not done its work.
func (x *world) checkOrder() {
	x.t.Helper()
	if !x.inits {
		return
	}
	view, err := x.rt.Pod(x.t.Context(), string(x.uid))
	if err != nil {
		x.fatal("%v", err)
	}
	main, done := "", false
	for i := range view.Containers {
		c := &view.Containers[i]
		if view.Sandbox == nil || !view.Sandbox.Whole || c.SandboxID != view.Sandbox.ID {
			continue
		}
		done = done || c.Name == "first" && c.State == cri.Exited && c.ExitCode == 0
		if (c.Name == "web" || c.Name == "app") && c.State == cri.Running {
			main = c.Name
		}
	}
	if main != "" && !done {
		x.fatal("%s runs before the init container is done: %+v", main, view)
	}
}

func (x *world) fatal(format string, args ...any) {
	x.t.Helper()
	for _, l := range x.log {
		x.t.Log(l)
	}
	x.t.Fatalf(format, args...)
}

func (x *world) advance(d time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.now = x.now.Add(d)
}

// anything is one random thing that happens in the world.
func (x *world) anything() {
	switch n := x.rnd.IntN(100); {
	case n < 40:
		x.release()
	case n < 80:
		x.step()
	case n < 88:
		name := []string{"web", "app", "first", "side", "debug", "aimed"}[x.rnd.IntN(6)]
		code := int32(x.rnd.IntN(2))
		if x.rt.Exit(string(x.uid), name, code, false) {
			x.note("%s exits with %d", name, code)
			x.w.send(func(b *inbox) { b.stale = true })
		}
	case n < 94:
		x.advance(time.Duration(x.rnd.IntN(20)) * time.Second)
	case n < 96:
		x.crash()
	case n < 97:
		x.note("reboot")
		x.rt.Reboot()
		x.w.send(func(b *inbox) { b.stale = true })
	default:
		x.see()
	}
}

// wind lets everything go well until the worker is done.
func (x *world) wind() {
	x.mu.Lock()
	x.open = true
	gates := x.gates
	x.gates = nil
	x.mu.Unlock()
	for _, g := range gates {
		g.how <- nil
	}
	x.quiet()
	for range 300 {
		x.see()
		x.w.send(func(b *inbox) { b.stale = true })
		x.step()
		if x.done {
			return
		}
		x.advance(time.Minute)
	}
	x.fatal("the worker does not end: in progress %v, failures %v, view %+v", x.w.state.InProgress, x.w.state.Failures, x.w.view)
}

func TestRandomLives(t *testing.T) {
	lives := 200
	if testing.Short() {
		lives = 50
	}
	for seed := range uint64(lives) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { randomLife(t, seed) })
	}
}

func randomLife(t *testing.T, seed uint64) {
	x := newWorld(t, seed)
	policies := []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}
	pod := plantest.Pod("web", plantest.TwoContainers, plantest.RestartPolicy(policies[x.rnd.IntN(3)]))
	if x.inits = seed%2 == 1; x.inits {
		plantest.WithInits("side*", "first")(pod)
	}
	made, err := x.api.Create(t.Context(), pod, client.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	x.uid = made.GetUID()
	if seed%3 == 0 {
		pod = made.DeepCopyObject().(*corev1.Pod)
		plantest.WithDebug("debug", "aimed>web")(pod)
		if _, err := x.api.Update(t.Context(), pod, client.WriteOptions{Subresource: "ephemeralcontainers"}); err != nil {
			t.Fatal(err)
		}
	}
	x.boot()
	for range 50 + x.rnd.IntN(250) {
		x.anything()
	}
	x.note("delete")
	if _, err := x.api.Delete(t.Context(), podKey("web"), nil); err != nil {
		t.Fatal(err)
	}
	x.see()
	for range x.rnd.IntN(60) {
		if x.done {
			break
		}
		x.anything()
	}
	if x.done { // what a worker leaves when it thinks that it is done is what counts
		x.rt.Hooks = fake.Hooks{}
	} else {
		x.wind()
	}
	if view, err := x.rt.Pods(t.Context()); err != nil || len(view) > 0 {
		x.fatal("the runtime still holds %+v, %v", view, err)
	}
	if _, err := x.api.Get(t.Context(), podKey("web")); err == nil {
		x.fatal("the pod is still in the API")
	}
	for _, dir := range []string{"pods", "pods-logs"} {
		entries, err := os.ReadDir(filepath.Join(x.k.cfg.DataDir, dir))
		if err == nil && len(entries) > 0 {
			x.fatal("%s still holds %v", dir, entries)
		}
	}
}
