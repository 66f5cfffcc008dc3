package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/podspec"
	"minik8s/internal/client"
	"minik8s/internal/kubelet/containerd"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/plan/plantest"
	"minik8s/internal/kubelet/status"
	"minik8s/internal/network"
)

// realBed is a kubelet on real containers: a directory, cgroup and runtime of its own, all of which
// are gone after the test, whatever became of it.
type realBed struct {
	bed
	rtCfg   containerd.Config
	real    *containerd.Runtime
	network *network.Network
}

const busybox = "busybox"

var podKind = api.Pods

func newRealBed(t *testing.T) *realBed {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("real containers need root")
	}
	if _, err := os.Stat(filepath.Join("containerd", "bin", "stamp")); err != nil {
		t.Skip("runc and the keeper are not built: make runtime")
	}
	images := filepath.Join("..", "..", "build", "images")
	if _, err := os.Stat(filepath.Join(images, "stamp")); err != nil {
		t.Skip("the test images are not built: make images")
	}
	dir, err := os.MkdirTemp("", "minik8s-kubelet-")
	if err != nil {
		t.Fatal(err)
	}
	b := &realBed{}
	b.t, b.api = t, newTestAPI(t)
	level := slog.LevelWarn
	if testing.Verbose() {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: level}))
	root := "/" + filepath.Base(dir)
	b.rtCfg = containerd.Config{DataDir: dir, NodeName: "node1", CgroupRoot: root,
		LogMaxSize: 4 << 10, Log: log}
	b.cfg = Config{NodeName: "node1", NodeIP: netip.MustParseAddr("192.0.2.1"), DataDir: dir, CgroupRoot: root, Log: log}
	t.Cleanup(func() { b.destroy() })
	b.open()
	if _, err := b.real.ImportDir(t.Context(), images); err != nil {
		t.Fatal(err)
	}
	b.start()
	return b
}

func (b *realBed) open() {
	b.t.Helper()
	var err error
	b.network, err = network.New(network.Config{PodCIDR: netip.MustParsePrefix("10.89.0.0/20"), Owner: b.cfg.DataDir,
		StateFile: filepath.Join(b.cfg.DataDir, "network.json"), Log: b.cfg.Log})
	if err != nil {
		b.t.Fatal(err)
	}
	b.rtCfg.Network = b.network
	ctx := context.WithoutCancel(b.t.Context())
	rt, err := containerd.New(ctx, b.rtCfg)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.network.Setup(ctx); err != nil {
		b.t.Fatal(err)
	}
	rt.NetworkChanged(ctx)
	b.real, b.cri = rt, rt
}

// reopen ends the kubelet, whatever it is doing, and starts another on the same runtime.
func (b *realBed) reopen() {
	b.t.Helper()
	b.stop()
	b.start()
}

// destroy removes all and checks that nothing of it is left.
func (b *realBed) destroy() {
	defer os.RemoveAll(b.cfg.DataDir)
	if b.stop != nil {
		b.stop()
	}
	if b.real == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := errors.Join(b.real.Uninstall(ctx), b.network.Teardown(ctx), b.real.Close(), b.network.Close()); err != nil {
		b.t.Error(err)
	}
	b.real = nil
	if b.k != nil {
		uids, _ := b.k.volumes.Pods()
		for _, uid := range uids {
			_ = b.k.volumes.TearDown(uid)
			_ = b.k.removeCgroup(uid)
		}
		if err := b.k.cgroups.RemoveRoot(); err != nil {
			b.t.Error(err)
		}
	}
	b.traces()
}

// traces fails the test for each mount or process that is left.
func (b *realBed) traces() {
	b.t.Helper()
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		b.t.Error(err)
	}
	for line := range strings.Lines(string(data)) {
		if strings.Contains(line, b.cfg.DataDir) {
			b.t.Errorf("left behind, a mount: %s", line)
		}
	}
	eventually(b.t, "every process has ended", func() error {
		procs, err := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, p := range procs {
			if line, err := os.ReadFile(p); err == nil && strings.Contains(string(line), b.cfg.DataDir) {
				return fmt.Errorf("%s: %q", p, line)
			}
		}
		return err
	})
}

// eventually waits for what no event tells of.
func eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("not in time: %s: %v", what, err)
			return
		}
		<-tick.C
	}
}

// shell is a pod of one container that runs a script.
func shell(name, script string, change ...func(*corev1.Pod)) *corev1.Pod {
	return plantest.Pod(name, append([]func(*corev1.Pod){func(p *corev1.Pod) {
		p.Spec.Containers[0] = shellContainer("main", script)
	}}, change...)...)
}

func shellContainer(name, script string) corev1.Container {
	return corev1.Container{Name: name, Image: busybox, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sh", "-c", script}}
}

const forever = "trap 'exit 0' TERM; while :; do sleep 1000 & wait; done"

func hasPhase(phase corev1.PodPhase) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool { return p != nil && p.Status.Phase == phase }
}

func (b *realBed) logs(pod, container string, opts *corev1.PodLogOptions) string {
	b.t.Helper()
	r, err := b.k.Logs(b.t.Context(), "default", pod, container, opts)
	if err != nil {
		b.t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

// remove deletes a pod and waits until it is gone. Its grace is short, for a shell that has only just
// started does not yet listen to SIGTERM.
func (b *realBed) remove(name string) {
	b.t.Helper()
	b.deleteSoon(name)
	b.api.await(b.t, name, "gone", goneNow)
}

func (b *realBed) deleteSoon(name string) {
	b.t.Helper()
	one := int64(1)
	if _, err := b.api.Delete(b.t.Context(), podKey(name), &metav1.DeleteOptions{GracePeriodSeconds: &one}); err != nil {
		b.t.Fatal(err)
	}
}

func TestRealPodSharesItsNetworkAndVolumes(t *testing.T) {
	b := newRealBed(t)
	b.create(shell("two", "echo hello > /data/file; nc -l -p 8000 -e echo answer; "+forever, func(p *corev1.Pod) {
		reader := shellContainer("reader", "while ! [ -s /in/file ]; do sleep 0.02; done; cat /in/file; hostname; echo $GREETING; "+
			"touch /in/no 2>/dev/null || echo read-only; while ! nc 127.0.0.1 8000 2>/dev/null; do sleep 0.02; done; cat /sub/deep/x; df -m /mem | tail -1")
		reader.Env = []corev1.EnvVar{{Name: "NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}, {Name: "GREETING", Value: "I am $(NAME)"}}
		reader.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/in", ReadOnly: true}, {Name: "host", MountPath: "/sub", SubPath: "a"},
			{Name: "mem", MountPath: "/mem"}}
		p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
		p.Spec.Containers = append(p.Spec.Containers, reader)
		dir := filepath.Join(b.cfg.DataDir, "host")
		if err := os.MkdirAll(filepath.Join(dir, "a", "deep"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "a", "deep", "x"), []byte("from the host\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		p.Spec.Volumes = []corev1.Volume{
			{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "mem", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
			{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir}}},
		}
	}))
	b.api.await(t, "two", "running with its reader done", func(p *corev1.Pod) bool {
		st := podspec.ContainerStatus(&p.Status, "reader")
		return st != nil && st.State.Terminated != nil
	})
	got := b.logs("two", "reader", &corev1.PodLogOptions{})
	if want := "hello\ntwo\nI am two\nread-only\nanswer\nfrom the host\ntmpfs"; !strings.HasPrefix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	b.remove("two")
	b.nothingLeft()
}

func TestRealOOMIsReported(t *testing.T) {
	b := newRealBed(t)
	b.create(shell("hungry", "x=x; while :; do x=$x$x; done", plantest.RestartPolicy(corev1.RestartPolicyNever), func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("16Mi")}
	}))
	p := b.api.await(t, "hungry", "failed", hasPhase(corev1.PodFailed))
	if end := p.Status.ContainerStatuses[0].State.Terminated; end == nil || end.Reason != "OOMKilled" || end.ExitCode != 137 {
		t.Errorf("%s", statusText(p))
	}
	b.remove("hungry")
	b.nothingLeft()
}

func TestRealCrashAndMessages(t *testing.T) {
	b := newRealBed(t)
	b.create(shell("crash", "echo attempt; echo why > /dev/termination-log; exit 3"))
	p := b.api.await(t, "crash", "in a crash loop", func(p *corev1.Pod) bool {
		return p != nil && len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Waiting != nil &&
			p.Status.ContainerStatuses[0].State.Waiting.Reason == "CrashLoopBackOff"
	})
	st := p.Status.ContainerStatuses[0]
	if last := st.LastTerminationState.Terminated; st.RestartCount != 1 || last == nil || last.ExitCode != 3 || last.Message != "why\n" {
		t.Errorf("%s", statusText(p))
	}
	if got := b.logs("crash", "", &corev1.PodLogOptions{Previous: true}); got != "attempt\n" {
		t.Errorf("%q", got)
	}
	b.create(shell("fallback", "echo last words; exit 1", plantest.RestartPolicy(corev1.RestartPolicyNever), func(p *corev1.Pod) {
		p.Spec.Containers[0].TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	}))
	p = b.api.await(t, "fallback", "failed", hasPhase(corev1.PodFailed))
	if end := p.Status.ContainerStatuses[0].State.Terminated; end == nil || end.Message != "last words\n" {
		t.Errorf("%s", statusText(p))
	}
	if got := b.logs("fallback", "", &corev1.PodLogOptions{}); got != "last words\n" {
		t.Errorf("%q", got)
	}
	b.remove("crash")
	b.remove("fallback")
	b.nothingLeft()
}

func TestRealCommandNotFound(t *testing.T) {
	b := newRealBed(t)
	b.create(shell("nope", "", plantest.RestartPolicy(corev1.RestartPolicyNever), func(p *corev1.Pod) { p.Spec.Containers[0].Command = []string{"no-such-command"} }))
	p := b.api.await(t, "nope", "failed", hasPhase(corev1.PodFailed))
	if end := p.Status.ContainerStatuses[0].State.Terminated; end == nil || end.Reason != "StartError" || !strings.Contains(end.Message, "no-such-command") {
		t.Errorf("%s", statusText(p))
	}
	t.Log(p.Status.ContainerStatuses[0].State.Terminated)
	b.remove("nope")
	b.nothingLeft()
}

// pidOf is the first process of the pod's only running container.
func (b *realBed) pidOf(name string) int {
	b.t.Helper()
	pod := b.api.await(b.t, name, "there", func(p *corev1.Pod) bool { return p != nil })
	view, err := b.cri.Pod(b.t.Context(), string(pod.UID))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range view.Containers {
		if c.State == cri.Running {
			return int(c.Pid)
		}
	}
	b.t.Fatalf("nothing runs in %s: %+v", name, view)
	return 0
}

func TestRealKillFromOutside(t *testing.T) {
	b := newRealBed(t)
	b.create(shell("web", forever))
	b.api.await(t, "web", "running", running)
	if err := syscall.Kill(b.pidOf("web"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p := b.api.await(t, "web", "running again", func(p *corev1.Pod) bool { return running(p) && p.Status.ContainerStatuses[0].RestartCount == 1 })
	if last := p.Status.ContainerStatuses[0].LastTerminationState.Terminated; last == nil || last.ExitCode != 137 || last.Reason != "Error" {
		t.Errorf("%s", statusText(p))
	}
	b.remove("web")
	b.nothingLeft()
}

func TestRealGrace(t *testing.T) {
	b := newRealBed(t)
	b.create(shell("polite", "trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 1000 & wait; done"))
	b.create(shell("deaf", "trap '' TERM; echo up; while :; do sleep 1000; done"))
	for _, name := range []string{"polite", "deaf"} {
		b.api.await(t, name, "running", running)
		follow, err := b.k.Logs(t.Context(), "default", name, "", &corev1.PodLogOptions{Follow: true})
		if err != nil {
			t.Fatal(err)
		}
		up := make([]byte, 3)
		if _, err := io.ReadFull(follow, up); err != nil { // the trap is set
			t.Fatal(err)
		}
		rest := make(chan string, 1)
		go func() {
			defer follow.Close()
			data, err := io.ReadAll(follow)
			rest <- fmt.Sprint(string(data), err)
		}()
		one := int64(1)
		var opts *metav1.DeleteOptions
		want := "bye\n<nil>"
		if name == "deaf" {
			opts, want = &metav1.DeleteOptions{GracePeriodSeconds: &one}, "<nil>"
		}
		var codes []int32
		watch, err := b.api.Watch(t.Context(), podKind, client.WatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.api.Delete(t.Context(), podKey(name), opts); err != nil {
			t.Fatal(err)
		}
		for ev := range watch.Events() {
			p, ok := ev.Object.(*corev1.Pod)
			if !ok || p.Name != name {
				continue
			}
			if len(p.Status.ContainerStatuses) > 0 {
				if end := p.Status.ContainerStatuses[0].State.Terminated; end != nil {
					codes = append(codes, end.ExitCode)
				}
			}
			if ev.Type == client.Deleted {
				break
			}
		}
		watch.Stop()
		if code := map[string]int32{"polite": 7, "deaf": 137}[name]; !slices.Contains(codes, code) {
			t.Errorf("%s ended with %v, want %d", name, codes, code)
		}
		if got := <-rest; got != want {
			t.Errorf("%s: the log ends with %q, want %q", name, got, want)
		}
	}
	b.nothingLeft()
}

func TestRealLogsRotate(t *testing.T) {
	b := newRealBed(t)
	// 300 lines of about 80 bytes, in files of 4 KiB, of which five are kept.
	b.create(shell("talk", "i=0; while [ $i -lt 300 ]; do echo line $i of a log; i=$((i+1)); done; "+forever))
	b.api.await(t, "talk", "running", running)
	follow, err := b.k.Logs(t.Context(), "default", "talk", "main", &corev1.PodLogOptions{Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer follow.Close()
	var text strings.Builder
	buf := make([]byte, 4096)
	for !strings.HasSuffix(text.String(), "line 299 of a log\n") {
		n, err := follow.Read(buf)
		text.Write(buf[:n])
		if err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	for i, l := range lines {
		if want := fmt.Sprintf("line %d of a log", 300-len(lines)+i); l != want {
			t.Fatalf("line %d is %q, want %q", i, l, want)
		}
	}
	tail := int64(3)
	if got := b.logs("talk", "main", &corev1.PodLogOptions{TailLines: &tail}); got != "line 297 of a log\nline 298 of a log\nline 299 of a log\n" {
		t.Errorf("%q", got)
	}
	b.remove("talk")
	b.nothingLeft()
}

func TestRealRestartKeepsPods(t *testing.T) {
	b := newRealBed(t)
	b.create(shell("web", forever))
	before := b.api.await(t, "web", "running", running)
	pid := b.pidOf("web")
	b.reopen()
	after := b.api.await(t, "web", "running", running)
	if was, is := before.Status, after.Status; !status.Equal(&was, &is) {
		t.Errorf("%+v became\n%s", was, statusText(after))
	}
	if now := b.pidOf("web"); now != pid {
		t.Errorf("pid %d became %d", pid, now)
	}
	b.remove("web")
	b.nothingLeft()
}

func TestRealRestartInTheMiddle(t *testing.T) {
	b := newRealBed(t)
	const n = 6
	for round := range 2 {
		for i := range n {
			b.create(shell(fmt.Sprint("p", i), forever))
		}
		b.api.await(t, fmt.Sprint("p", round), "seen", func(p *corev1.Pod) bool { return p != nil && p.Status.StartTime != nil })
		b.reopen()
		for i := range n {
			p := b.api.await(t, fmt.Sprint("p", i), "running", running)
			if p.Status.ContainerStatuses[0].RestartCount != 0 {
				t.Errorf("%s", statusText(p))
			}
		}
		for i := range n {
			b.deleteSoon(fmt.Sprint("p", i))
		}
		b.api.await(t, fmt.Sprint("p", round), "gone", goneNow)
		b.reopen()
		for i := range n {
			b.api.await(t, fmt.Sprint("p", i), "gone", goneNow)
		}
		b.nothingLeft()
	}
}
