package kubelet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/faulty"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/cri/fake"
	"minik8s/internal/kubelet/hostports"
	"minik8s/internal/kubelet/plan/plantest"
	"minik8s/internal/kubelet/status"
)

func TestPodRunsAndGoes(t *testing.T) {
	b := newBed(t)
	b.start()
	b.create(plantest.Pod("web", func(p *corev1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "app", Image: "app:1"})
	}))
	p := b.api.await(t, "web", "running", running)
	st := p.Status
	if st.PodIP == "" || st.HostIP != "192.0.2.1" || st.StartTime == nil || st.QOSClass != corev1.PodQOSBestEffort ||
		len(st.ContainerStatuses) != 2 || st.ContainerStatuses[0].Name != "app" || st.ObservedGeneration != 1 {
		t.Errorf("%s", statusText(p))
	}
	if !*st.ContainerStatuses[0].Started || st.ContainerStatuses[0].ContainerID[:13] != "containerd://" {
		t.Errorf("%s", statusText(p))
	}
	b.api.awaitEvent(t, "web", "Started")
	b.delete("web")
	b.api.await(t, "web", "gone", goneNow)
	b.nothingLeft()
}

func TestFinishedPodKeepsItsStatus(t *testing.T) {
	for _, c := range []struct {
		policy corev1.RestartPolicy
		code   int32
		phase  corev1.PodPhase
		reason string
	}{
		{corev1.RestartPolicyNever, 0, corev1.PodSucceeded, "Completed"},
		{corev1.RestartPolicyNever, 3, corev1.PodFailed, "Error"},
		{corev1.RestartPolicyOnFailure, 0, corev1.PodSucceeded, "Completed"},
	} {
		t.Run(fmt.Sprint(c.policy, c.code), func(t *testing.T) {
			b := newBed(t)
			b.start()
			uid := b.create(plantest.Pod("job", plantest.RestartPolicy(c.policy))).UID
			b.api.await(t, "job", "running", running)
			b.rt.Exit(string(uid), "web", c.code, false)
			p := b.api.await(t, "job", "finished", func(p *corev1.Pod) bool { return p.Status.Phase == c.phase })
			end := p.Status.ContainerStatuses[0].State.Terminated
			if end == nil || end.Reason != c.reason || end.ExitCode != c.code || isReady(p) {
				t.Errorf("%s", statusText(p))
			}
			b.restart()
			if got := b.api.await(t, "job", "there", func(p *corev1.Pod) bool { return p != nil }); !status.Equal(&got.Status, &p.Status) {
				t.Errorf("after a restart: %s", statusText(got))
			}
			b.delete("job")
			b.api.await(t, "job", "gone", goneNow)
			b.nothingLeft()
		})
	}
}

func TestCrashLoopBacksOff(t *testing.T) {
	b := newBed(t)
	b.start()
	uid := string(b.create(plantest.Pod("web")).UID)
	b.api.await(t, "web", "running", running)
	b.rt.Exit(uid, "web", 1, true) // the first restart is at once
	p := b.api.await(t, "web", "restarted", func(p *corev1.Pod) bool {
		return running(p) && p.Status.ContainerStatuses[0].RestartCount == 1
	})
	if last := p.Status.ContainerStatuses[0].LastTerminationState.Terminated; last == nil || last.Reason != "OOMKilled" {
		t.Errorf("%s", statusText(p))
	}
	b.rt.Exit(uid, "web", 1, false)
	p = b.api.await(t, "web", "backing off", func(p *corev1.Pod) bool {
		w := p.Status.ContainerStatuses[0].State.Waiting
		return w != nil && w.Reason == "CrashLoopBackOff"
	})
	if p.Status.Phase != corev1.PodRunning || isReady(p) {
		t.Errorf("%s", statusText(p))
	}
	b.api.awaitEvent(t, "web", "BackOff")
	b.restart() // the back-off is estimated, not forgotten
	if p = b.api.await(t, "web", "there", func(p *corev1.Pod) bool { return p != nil }); p.Status.ContainerStatuses[0].State.Waiting == nil {
		t.Errorf("%s", statusText(p))
	}
	b.delete("web")
	b.api.await(t, "web", "gone", goneNow)
	b.nothingLeft()
}

// The resources of a finished pod are released before its final status is written.
func TestRoomOfAFinishedPodIsFreeAtOnce(t *testing.T) {
	b := newBed(t)
	b.cfg.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	b.start()
	for i := range 20 {
		name := fmt.Sprint("job", i)
		pod := b.create(plantest.Pod(name, plantest.RestartPolicy(corev1.RestartPolicyNever), func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("600m")}
		}))
		b.api.await(t, name, "running", running)
		b.rt.Exit(string(pod.UID), "web", 0, false)
		b.api.await(t, name, "done", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
	}
}

// late is a runtime whose starts are answered only when the test says so, after what they have led to.
type late struct {
	*fake.Runtime
	answer chan struct{}
}

func (l *late) StartContainer(ctx context.Context, id string) error {
	err := l.Runtime.StartContainer(ctx, id)
	select {
	case <-l.answer:
	case <-ctx.Done():
	}
	return err
}

func TestCommandNotFound(t *testing.T) {
	b := newBed(t)
	rt := &late{b.rt, make(chan struct{})} // the container's end is seen before the answer to its start
	b.cri = rt
	b.rt.Hooks.Before = func(_ context.Context, call, _, _ string) error {
		if call == "StartContainer" {
			return &cri.StartError{Message: `exec: "nope": executable file not found in $PATH`, ExitCode: 127}
		}
		return nil
	}
	b.start()
	b.create(plantest.Pod("web", plantest.RestartPolicy(corev1.RestartPolicyNever)))
	p := b.api.await(t, "web", "failed", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
	end := p.Status.ContainerStatuses[0].State.Terminated
	if end == nil || end.Reason != "StartError" || end.ExitCode != 127 || end.Message == "" {
		t.Errorf("%s", statusText(p))
	}
	close(rt.answer)
	b.sound()
}

func TestFailedStepsAreTriedAgain(t *testing.T) {
	for _, call := range []string{"EnsureSandbox", "CreateContainer", "StartContainer"} {
		t.Run(call, func(t *testing.T) {
			b := newBed(t)
			var once sync.Once
			b.rt.Hooks.Before = func(_ context.Context, c, _, _ string) (err error) {
				if c == call {
					once.Do(func() { err = errors.New("injected") })
				}
				return err
			}
			b.start()
			b.create(plantest.Pod("web"))
			p := b.api.await(t, "web", "running", running)
			if p.Status.ContainerStatuses[0].RestartCount != 0 {
				t.Errorf("%s", statusText(p))
			}
			b.delete("web")
			b.api.await(t, "web", "gone", goneNow)
			b.nothingLeft()
		})
	}
}

func TestPanicOfOnePodHurtsNoOther(t *testing.T) {
	b := newBed(t)
	var bad string
	var mu sync.Mutex
	panics := 0
	b.rt.Hooks.Before = func(_ context.Context, call, uid, _ string) error {
		mu.Lock()
		defer mu.Unlock()
		if call == "EnsureSandbox" && uid == bad && panics == 0 {
			panics++
			panic("injected")
		}
		return nil
	}
	b.cfg.Log = slog.New(slog.DiscardHandler)
	bad = "bad-uid"
	b.start()
	b.create(plantest.Pod("bad", func(p *corev1.Pod) { p.UID = "bad-uid" }))
	b.create(plantest.Pod("good"))
	b.api.await(t, "good", "running", running)
	b.api.await(t, "bad", "running", running)
}

func TestRestartFindsPodsAgain(t *testing.T) {
	b := newBed(t)
	b.start()
	for i := range 5 {
		b.create(plantest.Pod(fmt.Sprint("web", i)))
	}
	before := map[string]corev1.PodStatus{}
	for i := range 5 {
		name := fmt.Sprint("web", i)
		before[name] = b.api.await(t, name, "running", running).Status
	}
	b.stop()
	b.rt.Restart()
	// While the daemon is away: one is deleted with grace, one by force, one comes, one dies.
	b.delete("web0")
	now := int64(0)
	if _, err := b.api.Delete(t.Context(), podKey("web1"), &metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	b.create(plantest.Pod("late"))
	uid := b.api.await(t, "web2", "there", func(p *corev1.Pod) bool { return p != nil }).UID
	b.rt.Exit(string(uid), "web", 2, false)
	b.start()
	b.api.await(t, "web0", "gone", goneNow)
	b.api.await(t, "late", "running", running)
	b.api.await(t, "web2", "restarted", func(p *corev1.Pod) bool { return running(p) && p.Status.ContainerStatuses[0].RestartCount == 1 })
	for _, name := range []string{"web3", "web4"} {
		p := b.api.await(t, name, "there", func(p *corev1.Pod) bool { return p != nil })
		was := before[name]
		if !status.Equal(&p.Status, &was) {
			t.Errorf("%s was\n%+v\nis\n%s", name, was, statusText(p))
		}
	}
	for _, name := range []string{"web2", "web3", "web4", "late"} {
		b.delete(name)
		b.api.await(t, name, "gone", goneNow)
	}
	b.nothingLeft()
}

func TestReboot(t *testing.T) {
	b := newBed(t)
	b.start()
	b.create(plantest.Pod("web"))
	b.create(plantest.Pod("job", plantest.RestartPolicy(corev1.RestartPolicyNever)))
	b.api.await(t, "web", "running", running)
	b.api.await(t, "job", "running", running)
	b.rt.Reboot()
	b.api.await(t, "web", "running again", func(p *corev1.Pod) bool { return running(p) && p.Status.ContainerStatuses[0].RestartCount == 1 })
	b.api.await(t, "job", "failed", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
	b.sound()
}

func TestNoRoom(t *testing.T) {
	b := newBed(t)
	b.cfg.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	b.start()
	ask := func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("600m")}
	}
	b.create(plantest.Pod("first", ask))
	b.api.await(t, "first", "running", running)
	b.create(plantest.Pod("second", ask))
	p := b.api.await(t, "second", "failed", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
	want := "Pod was rejected: Node didn't have enough resource: cpu, requested: 600, used: 600, capacity: 1000"
	if p.Status.Reason != "OutOfcpu" || p.Status.Message != want {
		t.Errorf("%s", statusText(p))
	}
	b.delete("first")
	b.api.await(t, "first", "gone", goneNow)
	b.create(plantest.Pod("third", ask))
	b.api.await(t, "third", "running", running)
}

func TestActiveDeadline(t *testing.T) {
	b := newBed(t)
	b.start()
	one := int64(1)
	b.create(plantest.Pod("web", func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = &one }))
	p := b.api.await(t, "web", "failed", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
	if p.Status.Reason != "DeadlineExceeded" || p.Status.ContainerStatuses[0].State.Terminated == nil {
		t.Errorf("%s", statusText(p))
	}
}

func TestShorterGraceOvertakes(t *testing.T) {
	b := newBed(t)
	b.rt.Hooks.StopTime = func(cri.Container) time.Duration { return time.Hour }
	b.start()
	b.create(plantest.Pod("web"))
	b.api.await(t, "web", "running", running)
	b.delete("web")
	b.api.awaitEvent(t, "web", "Killing")
	one := int64(1)
	if _, err := b.api.Delete(t.Context(), podKey("web"), &metav1.DeleteOptions{GracePeriodSeconds: &one}); err != nil {
		t.Fatal(err)
	}
	b.api.await(t, "web", "gone", goneNow)
	b.nothingLeft()
}

func TestWatchThatBreaksMissesNothing(t *testing.T) {
	b := newBed(t)
	b.start()
	b.create(plantest.Pod("a"))
	b.api.await(t, "a", "running", running)
	b.api.node.breakWatches()
	b.delete("a")
	b.create(plantest.Pod("b"))
	b.api.await(t, "a", "gone", goneNow)
	b.api.await(t, "b", "running", running)
}

func TestStatusOutlivesAnAPIThatFails(t *testing.T) {
	b := newBed(t)
	var mu sync.Mutex
	failures := 0
	b.api.node.fail = func(key client.Key) error {
		mu.Lock()
		defer mu.Unlock()
		if key.Kind == api.Pods && failures < 3 {
			failures++
			return errors.New("injected")
		}
		return nil
	}
	b.start()
	b.create(plantest.Pod("web"))
	b.api.await(t, "web", "running", running)
}

// Calls that fail before or after they took effect, conflicts, repeated writes and watches that break hold pods up,
// and change nothing else.
func TestPodsRunThroughAFaultyAPI(t *testing.T) {
	for seed := range int64(3) {
		b := newBed(t)
		b.api.node.Interface = faulty.New(b.api.node.Interface, faulty.Rates{Drop: 0.1, Lose: 0.1, Conflict: 0.1, Repeat: 0.1, Break: 0.05}, seed)
		b.start()
		pods := []string{"a", "b", "c"}
		for _, name := range pods {
			b.create(plantest.Pod(name, plantest.TwoContainers))
		}
		for _, name := range pods {
			b.api.await(t, name, "running", running)
			b.delete(name)
		}
		for _, name := range pods {
			b.api.await(t, name, "gone", goneNow)
		}
		b.nothingLeft()
		b.stop()
	}
}

func TestRandomHostPorts(t *testing.T) {
	b := newBed(t)
	b.start()
	pod := b.create(plantest.Pod("web", func(p *corev1.Pod) {
		p.Annotations = map[string]string{hostports.RandomAnnotation: "true"}
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80}, {ContainerPort: 53, Protocol: corev1.ProtocolUDP, HostPort: 5353}}
	}))
	p := b.api.await(t, "web", "running", running)
	cfg, _ := b.rt.Sandbox(string(pod.UID))
	if len(cfg.HostPorts) != 2 || cfg.HostPorts[1].HostPort != 5353 ||
		p.Annotations[hostports.Annotation] != fmt.Sprintf("80:%d/TCP", cfg.HostPorts[0].HostPort) {
		t.Errorf("%v %+v", p.Annotations, cfg.HostPorts)
	}
}

func TestManyPodsAtOnce(t *testing.T) {
	b := newBed(t)
	b.start()
	const n = 100
	for i := range n {
		b.create(plantest.Pod(fmt.Sprint("p", i)))
	}
	for i := range n {
		b.api.await(t, fmt.Sprint("p", i), "running", running)
	}
	for i := range n {
		b.delete(fmt.Sprint("p", i))
	}
	for i := range n {
		b.api.await(t, fmt.Sprint("p", i), "gone", goneNow)
	}
	b.nothingLeft()
}

// BenchmarkPodStart is the kubelet's own share of a pod's start: everything but the runtime.
func BenchmarkPodStart(b *testing.B) {
	f, rt := newTestAPI(b), fake.New("web:1")
	k := New(Config{NodeName: "node1", NodeIP: netip.MustParseAddr("192.0.2.1"), DataDir: b.TempDir(), MaxPods: 1 << 20}, f.node, rt)
	ctx, cancel := context.WithCancel(b.Context())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- k.Run(ctx, func() { close(ready) }) }()
	<-ready
	b.ResetTimer()
	for i := range b.N {
		name := fmt.Sprint("p", i)
		if _, err := f.Create(ctx, plantest.Pod(name), client.WriteOptions{}); err != nil {
			b.Fatal(err)
		}
		f.await(b, name, "running", running)
	}
	b.StopTimer()
	cancel()
	<-done
}

// A pod whose deadline passes before its image is pulled ends with terminated containers, too.
func TestDeadlineBeforeTheStart(t *testing.T) {
	b := newBed(t)
	b.rt.Hooks.Pull = func(ctx context.Context, _ string, _ func(cri.Progress)) (*cri.Image, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	b.start()
	b.create(plantest.Pod("web", func(p *corev1.Pod) {
		p.Spec.Containers[0].Image, p.Spec.ActiveDeadlineSeconds = "slow:1", new(int64(1))
	}))
	p := b.api.await(t, "web", "failed", func(p *corev1.Pod) bool { return p != nil && p.Status.Phase == corev1.PodFailed })
	if end := p.Status.ContainerStatuses[0].State.Terminated; p.Status.Reason != "DeadlineExceeded" || end == nil || end.Reason != "ContainerStatusUnknown" {
		t.Fatalf("%+v", p.Status)
	}
}
