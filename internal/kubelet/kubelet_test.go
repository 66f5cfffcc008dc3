package kubelet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/cri/fake"
)

// bed is a kubelet on a fake runtime and a fake API.
type bed struct {
	t    *testing.T
	api  *fakeAPI
	rt   *fake.Runtime // nil on a real one
	cri  cri.Runtime
	cfg  Config
	k    *Kubelet
	stop func()
}

func newBed(t *testing.T) *bed {
	b := &bed{t: t, api: newFakeAPI(), rt: fake.New("web:1", "app:1")}
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
	b.k = New(b.cfg, b.api, b.cri)
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

func testPod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	grace := int64(30)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Generation: 1},
		Spec: corev1.PodSpec{NodeName: "node1", RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

func policy(p corev1.RestartPolicy) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.RestartPolicy = p }
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
	c := conditionOf(p.Status.Conditions, corev1.PodReady)
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

func TestPodRunsAndGoes(t *testing.T) {
	b := newBed(t)
	b.start()
	b.create(testPod("web", func(p *corev1.Pod) {
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

func TestNodeIsRegistered(t *testing.T) {
	b := newBed(t)
	b.cfg.Version, b.cfg.RuntimeVersion, b.cfg.PodCIDR = "v1.37.0", "1.7.35", netip.MustParsePrefix("10.244.0.0/24")
	b.start()
	node, err := client.Get[*corev1.Node](t.Context(), b.api, client.Key{Kind: api.Nodes, Name: "node1"})
	if err != nil {
		t.Fatal(err)
	}
	if nodeReady(node) == nil || node.Labels[corev1.LabelHostname] != "node1" || node.Spec.PodCIDR != "10.244.0.0/24" ||
		node.Status.Allocatable.Pods().Value() != 110 || node.Status.Allocatable.Cpu().IsZero() ||
		node.Status.NodeInfo.ContainerRuntimeVersion != "containerd://1.7.35" || len(node.Status.Images) != 2 || len(node.Status.Conditions) != 4 {
		t.Errorf("%+v", node)
	}
}

func TestNodeComesBackWhenDeleted(t *testing.T) {
	b := newBed(t)
	b.start()
	key := client.Key{Kind: api.Nodes, Name: "node1"}
	if _, err := b.api.Delete(t.Context(), key, nil); err != nil {
		t.Fatal(err)
	}
	deadline := time.After(10 * time.Second)
	for {
		b.api.mu.Lock()
		node, changed := b.api.objects[id(key)], b.api.changed
		b.api.mu.Unlock()
		if node != nil && nodeReady(node.(*corev1.Node)) != nil {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatal("the node was not registered again")
		}
	}
}

func TestManifestOfTheNodeIsFilledIn(t *testing.T) {
	b := newBed(t)
	made := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node1", Labels: map[string]string{"disk": "ssd"}},
		Spec: corev1.NodeSpec{PodCIDR: "10.9.0.0/24", Unschedulable: true}}
	if _, err := b.api.Create(t.Context(), made, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.cfg.PodCIDR = netip.MustParsePrefix("10.244.0.0/24")
	b.start()
	node, err := client.Get[*corev1.Node](t.Context(), b.api, client.Key{Kind: api.Nodes, Name: "node1"})
	if err != nil {
		t.Fatal(err)
	}
	if nodeReady(node) == nil || node.Labels["disk"] != "ssd" || node.Labels[corev1.LabelHostname] != "node1" ||
		node.Spec.PodCIDR != "10.9.0.0/24" || !node.Spec.Unschedulable {
		t.Errorf("%+v", node)
	}
}

// ranged is a runtime that is told the range of its pods.
type ranged struct {
	*fake.Runtime
	got []netip.Prefix
}

func (r *ranged) SetPodCIDR(_ context.Context, p netip.Prefix) error {
	r.got = append(r.got, p)
	return nil
}

func TestRangeOfTheNodeIsUsed(t *testing.T) {
	b := newBed(t)
	rt := &ranged{Runtime: b.rt}
	b.cri = rt
	b.cfg.PodCIDR = netip.MustParsePrefix("10.244.0.0/24")
	b.start()
	b.stop()
	if len(rt.got) > 0 {
		t.Errorf("the range was set to %v, though it was that before", rt.got)
	}
	b.cfg.PodCIDR = netip.MustParsePrefix("10.9.0.0/24") // what the Node says stays
	b.start()
	b.stop()
	if len(rt.got) != 1 || rt.got[0].String() != "10.244.0.0/24" {
		t.Errorf("the range was set to %v", rt.got)
	}
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
			uid := b.create(testPod("job", policy(c.policy))).UID
			b.api.await(t, "job", "running", running)
			b.rt.Exit(string(uid), "web", c.code, false)
			p := b.api.await(t, "job", "finished", func(p *corev1.Pod) bool { return p.Status.Phase == c.phase })
			end := p.Status.ContainerStatuses[0].State.Terminated
			if end == nil || end.Reason != c.reason || end.ExitCode != c.code || isReady(p) {
				t.Errorf("%s", statusText(p))
			}
			b.restart()
			if got := b.api.await(t, "job", "there", func(p *corev1.Pod) bool { return p != nil }); !equalStatus(&got.Status, &p.Status) {
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
	uid := string(b.create(testPod("web")).UID)
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
	b.restart() // the back-off is guessed, not forgotten
	if p = b.api.await(t, "web", "there", func(p *corev1.Pod) bool { return p != nil }); p.Status.ContainerStatuses[0].State.Waiting == nil {
		t.Errorf("%s", statusText(p))
	}
	b.delete("web")
	b.api.await(t, "web", "gone", goneNow)
	b.nothingLeft()
}

func TestImageTrouble(t *testing.T) {
	b := newBed(t)
	b.rt.Hooks.Pull = func(context.Context, string, func(cri.Progress)) (*cri.Image, error) {
		return nil, fmt.Errorf("%w: nothing:1", cri.ErrImageNotFound)
	}
	b.start()
	b.create(testPod("web", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "nothing:1" }))
	waits := func(reason string) func(*corev1.Pod) bool {
		return func(p *corev1.Pod) bool {
			return p != nil && len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Waiting != nil &&
				p.Status.ContainerStatuses[0].State.Waiting.Reason == reason
		}
	}
	b.api.await(t, "web", "in ErrImagePull", waits("ErrImagePull"))
	b.api.awaitEvent(t, "web", "Failed")
	b.api.await(t, "web", "in ImagePullBackOff", waits("ImagePullBackOff"))
	b.create(testPod("never", func(p *corev1.Pod) {
		p.Spec.Containers[0].Image, p.Spec.Containers[0].ImagePullPolicy = "nothing:1", corev1.PullNever
	}))
	b.api.await(t, "never", "in ErrImageNeverPull", waits("ErrImageNeverPull"))
	b.create(testPod("bad", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "a b:1" }))
	b.api.await(t, "bad", "in InvalidImageName", waits("InvalidImageName"))
	for _, name := range []string{"web", "never", "bad"} {
		b.delete(name)
		b.api.await(t, name, "gone", goneNow)
	}
	b.nothingLeft()
}

func TestAnImportedImageIsNotWaitedFor(t *testing.T) {
	b := newBed(t)
	b.start()
	b.create(testPod("web", func(p *corev1.Pod) {
		p.Spec.Containers[0].Image, p.Spec.Containers[0].ImagePullPolicy = "later:1", corev1.PullNever
	}))
	b.api.awaitEvent(t, "web", "ErrImageNeverPull")
	b.rt.AddImage("later:1")
	b.k.ImagesChanged()
	b.api.await(t, "web", "running", running)
}

// A pod that has ended gives its room back before anybody can know that it has.
func TestRoomOfAFinishedPodIsFreeAtOnce(t *testing.T) {
	b := newBed(t)
	b.cfg.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	b.start()
	for i := range 20 {
		name := fmt.Sprint("job", i)
		pod := b.create(testPod(name, policy(corev1.RestartPolicyNever), func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = list("600m", "")
		}))
		b.api.await(t, name, "running", running)
		b.rt.Exit(string(pod.UID), "web", 0, false)
		b.api.await(t, name, "done", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
	}
}

// An image that comes by another way while it is being pulled ends the pull, and the pod starts.
func TestAnImportEndsAPull(t *testing.T) {
	b := newBed(t)
	b.rt.Hooks.Pull = func(ctx context.Context, _ string, _ func(cri.Progress)) (*cri.Image, error) {
		<-ctx.Done() // a registry that never answers
		return nil, ctx.Err()
	}
	b.start()
	b.create(testPod("web", func(p *corev1.Pod) {
		p.Spec.Containers[0].Image, p.Spec.Containers[0].ImagePullPolicy = "slow:1", corev1.PullIfNotPresent
	}))
	b.api.awaitEvent(t, "web", "Pulling")
	b.rt.AddImage("slow:1")
	b.k.ImagesChanged()
	b.api.await(t, "web", "running", func(p *corev1.Pod) bool { return p != nil && p.Status.Phase == corev1.PodRunning })
}

func TestPullIsAbandonedWhenThePodGoes(t *testing.T) {
	b := newBed(t)
	begun := make(chan struct{}, 10)
	b.rt.Hooks.Pull = func(ctx context.Context, _ string, _ func(cri.Progress)) (*cri.Image, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	b.start()
	b.create(testPod("web", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "slow:1" }))
	<-begun
	b.delete("web")
	b.api.await(t, "web", "gone", goneNow)
	b.nothingLeft()
}

func TestCommandNotFound(t *testing.T) {
	b := newBed(t)
	b.rt.Hooks.Before = func(_ context.Context, call, _, _ string) error {
		if call == "StartContainer" {
			return &cri.StartError{Message: `exec: "nope": executable file not found in $PATH`, ExitCode: 127}
		}
		return nil
	}
	b.start()
	b.create(testPod("web", policy(corev1.RestartPolicyNever)))
	p := b.api.await(t, "web", "failed", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
	end := p.Status.ContainerStatuses[0].State.Terminated
	if end == nil || end.Reason != "StartError" || end.ExitCode != 127 || end.Message == "" {
		t.Errorf("%s", statusText(p))
	}
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
			b.create(testPod("web"))
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
	b.create(testPod("bad", func(p *corev1.Pod) { p.UID = "bad-uid" }))
	b.create(testPod("good"))
	b.api.await(t, "good", "running", running)
	b.api.await(t, "bad", "running", running)
}

func TestRestartFindsPodsAgain(t *testing.T) {
	b := newBed(t)
	b.start()
	for i := range 5 {
		b.create(testPod(fmt.Sprint("web", i)))
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
	b.create(testPod("late"))
	uid := b.api.await(t, "web2", "there", func(p *corev1.Pod) bool { return p != nil }).UID
	b.rt.Exit(string(uid), "web", 2, false)
	b.start()
	b.api.await(t, "web0", "gone", goneNow)
	b.api.await(t, "late", "running", running)
	b.api.await(t, "web2", "restarted", func(p *corev1.Pod) bool { return running(p) && p.Status.ContainerStatuses[0].RestartCount == 1 })
	for _, name := range []string{"web3", "web4"} {
		p := b.api.await(t, name, "there", func(p *corev1.Pod) bool { return p != nil })
		was := before[name]
		if !equalStatus(&p.Status, &was) {
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
	b.create(testPod("web"))
	b.create(testPod("job", policy(corev1.RestartPolicyNever)))
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
	b.create(testPod("first", ask))
	b.api.await(t, "first", "running", running)
	b.create(testPod("second", ask))
	p := b.api.await(t, "second", "failed", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
	want := "Pod was rejected: Node didn't have enough resource: cpu, requested: 600, used: 600, capacity: 1000"
	if p.Status.Reason != "OutOfcpu" || p.Status.Message != want {
		t.Errorf("%s", statusText(p))
	}
	b.delete("first")
	b.api.await(t, "first", "gone", goneNow)
	b.create(testPod("third", ask))
	b.api.await(t, "third", "running", running)
}

func TestActiveDeadline(t *testing.T) {
	b := newBed(t)
	b.start()
	one := int64(1)
	b.create(testPod("web", func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = &one }))
	p := b.api.await(t, "web", "failed", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
	if p.Status.Reason != "DeadlineExceeded" || p.Status.ContainerStatuses[0].State.Terminated == nil {
		t.Errorf("%s", statusText(p))
	}
}

func TestShorterGraceOvertakes(t *testing.T) {
	b := newBed(t)
	b.rt.Hooks.StopTime = func(cri.Container) time.Duration { return time.Hour }
	b.start()
	b.create(testPod("web"))
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
	b.create(testPod("a"))
	b.api.await(t, "a", "running", running)
	b.api.breakWatches()
	b.delete("a")
	b.create(testPod("b"))
	b.api.await(t, "a", "gone", goneNow)
	b.api.await(t, "b", "running", running)
}

func TestStatusOutlivesAnAPIThatFails(t *testing.T) {
	b := newBed(t)
	var mu sync.Mutex
	failures := 0
	b.api.fail = func(verb string, key client.Key) error {
		mu.Lock()
		defer mu.Unlock()
		if verb == "Update" && key.Kind == api.Pods && failures < 3 {
			failures++
			return errors.New("injected")
		}
		return nil
	}
	b.start()
	b.create(testPod("web"))
	b.api.await(t, "web", "running", running)
}

func TestRandomHostPorts(t *testing.T) {
	b := newBed(t)
	b.start()
	pod := b.create(testPod("web", func(p *corev1.Pod) {
		p.Annotations = map[string]string{RandomHostPortsAnnotation: "true"}
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80}, {ContainerPort: 53, Protocol: corev1.ProtocolUDP, HostPort: 5353}}
	}))
	p := b.api.await(t, "web", "running", running)
	known := parseHostPorts(p.Annotations[HostPortsAnnotation])
	cfg, _ := b.rt.Sandbox(string(pod.UID))
	if len(known) != 1 || len(cfg.HostPorts) != 2 || cfg.HostPorts[0].HostPort != known["80/TCP"] || cfg.HostPorts[1].HostPort != 5353 {
		t.Errorf("%v %+v", p.Annotations, cfg.HostPorts)
	}
}

func TestAnotherImageRestartsTheContainer(t *testing.T) {
	for _, p := range []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyNever} {
		t.Run(string(p), func(t *testing.T) {
			b := newBed(t)
			b.start()
			b.create(testPod("web", policy(p)))
			pod := b.api.await(t, "web", "running", running).DeepCopy()
			pod.Spec.Containers[0].Image, pod.ResourceVersion = "app:1", ""
			if _, err := b.api.Update(t.Context(), pod, client.WriteOptions{}); err != nil {
				t.Fatal(err)
			}
			b.api.await(t, "web", "running the other image", func(p *corev1.Pod) bool {
				return running(p) && p.Status.ContainerStatuses[0].Image == "app:1" && p.Status.ContainerStatuses[0].RestartCount == 1
			})
			b.delete("web")
			b.api.await(t, "web", "gone", goneNow)
			b.nothingLeft()
		})
	}
}

func TestManyPodsAtOnce(t *testing.T) {
	b := newBed(t)
	b.start()
	const n = 100
	for i := range n {
		b.create(testPod(fmt.Sprint("p", i)))
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
	f, rt := newFakeAPI(), fake.New("web:1")
	k := New(Config{NodeName: "node1", NodeIP: netip.MustParseAddr("192.0.2.1"), DataDir: b.TempDir(), MaxPods: 1 << 20}, f, rt)
	ctx, cancel := context.WithCancel(b.Context())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- k.Run(ctx, func() { close(ready) }) }()
	<-ready
	b.ResetTimer()
	for i := range b.N {
		name := fmt.Sprint("p", i)
		if _, err := f.Create(ctx, testPod(name), client.WriteOptions{}); err != nil {
			b.Fatal(err)
		}
		f.await(b, name, "running", running)
	}
	b.StopTimer()
	cancel()
	<-done
}

// A pod whose time is up before its image has come ends with containers that have ended, too.
func TestDeadlineBeforeTheStart(t *testing.T) {
	b := newBed(t)
	b.rt.Hooks.Pull = func(ctx context.Context, _ string, _ func(cri.Progress)) (*cri.Image, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	b.start()
	b.create(testPod("web", func(p *corev1.Pod) {
		p.Spec.Containers[0].Image, p.Spec.ActiveDeadlineSeconds = "slow:1", new(int64(1))
	}))
	p := b.api.await(t, "web", "failed", func(p *corev1.Pod) bool { return p != nil && p.Status.Phase == corev1.PodFailed })
	if end := p.Status.ContainerStatuses[0].State.Terminated; p.Status.Reason != "DeadlineExceeded" || end == nil || end.Reason != "ContainerStatusUnknown" {
		t.Fatalf("%+v", p.Status)
	}
}
