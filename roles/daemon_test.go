package roles_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/remote"
	"minik8s/internal/datadir"
	"minik8s/internal/machine"
	"minik8s/internal/store/external/externaltest"
)

// TestMain gives the tests a machine's network of their own.
func TestMain(m *testing.M) {
	externaltest.Main()
	machine.Run(m.Run)
}

// built is the daemon itself, as users run it: killed and started again it has to be a process.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "minik8s-built-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "minik8sd")
	out, err := exec.Command("go", "build", "-o", path, "minik8s").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// process is a running minik8sd.
type process struct {
	t      *testing.T
	dir    string
	args   []string
	root   string // a directory to chroot to, if any
	cmd    *exec.Cmd
	out    output
	exited chan struct{}
	err    error
}

// output keeps what a process prints, to be read while it runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func (o *output) Reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Reset()
}

func needRoot(t *testing.T) {
	t.Helper()
	if testing.Short() || os.Geteuid() != 0 {
		t.Skip("real containers need root, and more time than -short has")
	}
}

// newProcess makes a data directory with the test images; what is left in it at the end is removed.
func newProcess(t *testing.T, args ...string) *process {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "minik8s-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, dir: dir, args: append([]string{"--data-dir", dir, "--cgroup-root", "/" + filepath.Base(dir), "--log-level=info"}, args...)}
	archives, err := filepath.Glob("../build/images/*.tar")
	if err != nil || len(archives) == 0 {
		t.Fatal("no images in build/images: run make images", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "images"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, a := range archives {
		b, err := os.ReadFile(a)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "images", filepath.Base(a)), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		p.kill()
		cmd := exec.Command(path, append([]string{"clean"}, p.args...)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: p.root}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("clean: %v: %s", err, out)
		}
		// The directory and the images in it are the test's.
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 || entries[0].Name() != "images" {
			t.Errorf("clean left %v, %v", entries, err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
		if left := leftovers(dir); left != "" {
			t.Errorf("left behind: %s", left)
		}
	})
	return p
}

// leftovers are processes, mounts and cgroups that name the directory.
func leftovers(dir string) string {
	var left []string
	procs, _ := filepath.Glob("/proc/[0-9]*/cmdline") //nolint:errcheck // the pattern is good
	for _, f := range procs {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte(dir)) {
			left = append(left, strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	if b, err := os.ReadFile("/proc/self/mountinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if strings.Contains(line, dir) {
				left = append(left, "mounted: "+strings.TrimSpace(line))
			}
		}
	}
	groups, _ := filepath.Glob("/sys/fs/cgroup/*/" + filepath.Base(dir) + "*") //nolint:errcheck // the pattern is good
	if _, err := os.Stat(dir); err == nil {
		left = append(left, dir)
	}
	return strings.Join(append(left, groups...), "; ")
}

func (p *process) start() {
	p.t.Helper()
	path, err := built()
	if err != nil {
		p.t.Fatal(err)
	}
	p.out.Reset()
	p.cmd = exec.Command(path, p.args...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: p.root}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	exited := make(chan struct{})
	p.exited = exited
	go func() { p.err = p.cmd.Wait(); close(exited) }()
}

// up starts the daemon and waits until it is ready.
func (p *process) up() client.Interface {
	p.t.Helper()
	p.start()
	return p.await()
}

// await waits until the daemon is ready.
func (p *process) await() client.Interface {
	p.t.Helper()
	c, err := remote.New(remote.Config{Socket: filepath.Join(p.dir, "api.sock")})
	if err != nil {
		p.t.Fatal(err)
	}
	p.eventually("ready", func() bool {
		resp, err := c.Do(context.Background(), http.MethodGet, "/readyz", nil, "", nil)
		if err != nil {
			return false
		}
		resp.Body.Close() //nolint:errcheck // only its code is read
		return resp.StatusCode == http.StatusOK
	})
	return c
}

// eventually waits for a condition that no event tells.
func (p *process) eventually(what string, ok func() bool) {
	p.t.Helper()
	for end := time.Now().Add(60 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		select {
		case <-p.exited:
			p.t.Fatalf("the daemon ended before %s: %v\n%s", what, p.err, p.out.String())
		default:
		}
		if time.Now().After(end) {
			p.t.Fatalf("not %s in time; the daemon said:\n%s", what, p.stacks())
		}
	}
}

// stacks ends the daemon, and returns what it said with what each of its goroutines did.
func (p *process) stacks() string {
	p.cmd.Process.Signal(syscall.SIGQUIT) //nolint:errcheck // it may have ended
	<-p.exited
	return p.out.String()
}

// outlived is eventually for what happens without the daemon.
func (p *process) outlived(what string, ok func() bool) {
	p.t.Helper()
	for end := time.Now().Add(60 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("not %s in time", what)
		}
	}
}

func (p *process) kill() {
	if p.cmd != nil && p.cmd.Process != nil {
		p.cmd.Process.Kill() //nolint:errcheck // it may have ended
		<-p.exited
	}
}

// stop is SIGTERM.
func (p *process) stop() {
	p.t.Helper()
	began := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	<-p.exited
	if p.err != nil {
		p.t.Fatalf("after SIGTERM: %v\n%s", p.err, p.out.String())
	}
	if took := time.Since(began); took > 5*time.Second {
		p.t.Errorf("it took %s to stop", took)
	}
}

func shell(name, script string) *corev1.Pod {
	grace := int64(1)
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{{Name: "c", Image: "busybox",
			ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sh", "-c", script}}}}}
}

const forever = "trap exit TERM; while :; do sleep 1000 & wait $!; done"

func (p *process) create(c client.Interface, pod *corev1.Pod) {
	p.t.Helper()
	if _, err := c.Create(context.Background(), pod, client.WriteOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) pod(c client.Interface, name string) *corev1.Pod {
	p.t.Helper()
	pod, err := client.Get[*corev1.Pod](context.Background(), c, client.Key{Kind: api.Pods, Namespace: "default", Name: name})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return pod
}

func (p *process) running(c client.Interface, name string) *corev1.Pod {
	p.t.Helper()
	var pod *corev1.Pod
	p.eventually(name+" running", func() bool {
		pod = p.pod(c, name)
		return pod != nil && pod.Status.Phase == corev1.PodRunning && len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].Ready
	})
	return pod
}

// answer is what a web server says; empty if it says nothing.
func answer(address string) string {
	resp, err := (&http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + address + "/")
	if err != nil {
		return ""
	}
	defer resp.Body.Close()       //nolint:errcheck // it was read
	b, _ := io.ReadAll(resp.Body) //nolint:errcheck // compared by the caller
	return strings.TrimSpace(string(b))
}

// A stopped daemon leaves its pods running, and the next one finds the same containers and addresses.
func TestPodsOutliveTheDaemon(t *testing.T) {
	needRoot(t)
	p := newProcess(t)
	c := p.up()
	web := shell("web", "")
	web.Spec.Containers[0] = corev1.Container{Name: "web", Image: "minik8s/hello", ImagePullPolicy: corev1.PullIfNotPresent}
	p.create(c, web)
	p.create(c, shell("crasher", "test -e /tmp/x || exit 3; "+forever))
	before := p.running(c, "web")
	p.eventually("answered", func() bool { return answer(before.Status.PodIP) == "web" })
	p.eventually("restarted once", func() bool {
		pod := p.pod(c, "crasher")
		return len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].RestartCount > 0
	})
	counted := p.pod(c, "crasher").Status.ContainerStatuses[0].RestartCount
	for _, end := range []func(){p.stop, p.kill} {
		end()
		if got := answer(before.Status.PodIP); got != "web" {
			t.Fatalf("without the daemon the pod answers %q", got)
		}
		c = p.up()
		after := p.running(c, "web")
		if after.Status.PodIP != before.Status.PodIP || after.Status.ContainerStatuses[0].ContainerID != before.Status.ContainerStatuses[0].ContainerID ||
			after.Status.ContainerStatuses[0].RestartCount != 0 {
			t.Fatalf("found again as %+v", after.Status)
		}
		if got := p.pod(c, "crasher").Status.ContainerStatuses[0].RestartCount; got < counted {
			t.Fatalf("%d restarts were forgotten down to %d", counted, got)
		}
	}
}

// Killed in the middle of creating and of deleting pods, at any moment, nothing is orphaned, doubled
// or leaked, and every acknowledged write is there.
func TestKilledInTheMiddle(t *testing.T) {
	needRoot(t)
	p := newProcess(t)
	const many = 6
	for round := range 4 {
		c := p.up()
		var names []string
		for i := range many {
			name := fmt.Sprintf("p-%d-%d", round, i)
			p.create(c, shell(name, forever))
			names = append(names, name)
		}
		pause(time.Duration(round) * 40 * time.Millisecond)
		p.kill()
		c = p.up()
		addresses := map[string]string{}
		for _, n := range names {
			pod := p.running(c, n)
			if other, taken := addresses[pod.Status.PodIP]; taken {
				t.Fatalf("%s and %s both have %s", other, n, pod.Status.PodIP)
			}
			addresses[pod.Status.PodIP] = n
		}
		// What the API says may be from before the crash; the processes are the truth.
		p.eventually("one shell for each pod", func() bool { return sleepers(p.dir) == many })
		for _, n := range names {
			if _, err := c.Delete(context.Background(), client.Key{Kind: api.Pods, Namespace: "default", Name: n}, nil); err != nil {
				t.Fatal(err)
			}
		}
		pause(time.Duration(round) * 30 * time.Millisecond)
		p.kill()
		c = p.up()
		p.eventually("all gone", func() bool {
			list, err := c.List(context.Background(), api.Pods, client.ListOptions{})
			return err == nil && len(list.Items) == 0
		})
		p.eventually("no container left", func() bool { return sleepers(p.dir) == 0 })
		p.eventually("no interface left", func() bool { return interfaces() <= 4 }) // lo, eth0, wire0, a spare one
		p.stop()
	}
}

// pause picks the moment of a crash; nothing waits on it.
func pause(d time.Duration) { <-time.After(d) }

// sleepers counts the pods' shells by their cgroup.
func sleepers(dir string) int {
	n := 0
	procs, _ := filepath.Glob("/proc/[0-9]*") //nolint:errcheck // the pattern is good
	for _, proc := range procs {
		cg, err := os.ReadFile(proc + "/cgroup")
		if err != nil || !bytes.Contains(cg, []byte("/"+filepath.Base(dir)+"/")) {
			continue
		}
		if cmd, err := os.ReadFile(proc + "/cmdline"); err == nil && bytes.HasPrefix(cmd, []byte("sh\x00")) {
			n++
		}
	}
	return n
}

func interfaces() int {
	l, err := net.Interfaces()
	if err != nil {
		return -1
	}
	return len(l)
}

func (p *process) fails(says ...string) {
	p.t.Helper()
	p.start()
	select {
	case <-p.exited:
	case <-time.After(20 * time.Second):
		p.t.Fatal("it started")
	}
	if p.err == nil {
		p.t.Fatal("it ended without an error")
	}
	for _, s := range says {
		if !strings.Contains(p.out.String(), s) {
			p.t.Errorf("nothing of %q in: %s", s, p.out.String())
		}
	}
}

func TestRefusesToStart(t *testing.T) {
	needRoot(t)
	first := newProcess(t)
	c := first.up()
	web := shell("web", "")
	web.Spec.Containers[0] = corev1.Container{Name: "web", Image: "minik8s/hello", ImagePullPolicy: corev1.PullIfNotPresent}
	first.create(c, web)
	address := first.running(c, "web").Status.PodIP
	t.Cleanup(func() { // whoever was refused has touched nothing of the one that runs
		first.eventually("answered", func() bool { return answer(address) == "web" })
	})
	t.Run("a second daemon on one directory", func(t *testing.T) {
		second := &process{t: t, dir: first.dir, args: append(first.args, "--api-port=7443")}
		second.fails("another minik8sd", fmt.Sprint(first.cmd.Process.Pid), first.dir)
	})
	t.Run("a second daemon on one cgroup", func(t *testing.T) {
		second := &process{t: t, args: []string{"--data-dir", t.TempDir(), "--cgroup-root", "/" + filepath.Base(first.dir), "--api-port=7443", "--kubelet-port=0"}}
		second.fails("another daemon's pods", "--cgroup-root")
	})
	t.Run("the port is in use", func(t *testing.T) {
		p := newProcess(t)
		p.fails("6443", "in use", "--api-port")
		p.args = append(p.args, "--api-port=7443")
		p.fails("10250", "in use", "--kubelet-port")
	})
	t.Run("the port of a worker's own way to the masters is in use", func(t *testing.T) {
		p := &process{t: t, args: []string{"--role=worker", "--server=https://192.0.2.9", "--data-dir", filepath.Join(t.TempDir(), "data"), "--kubelet-port=0"}}
		p.fails("127.0.0.1:6443", "in use", "--api-port")
	})
	t.Run("a worker that knows no master", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "data")
		p := &process{t: t, args: []string{"--role=worker", "--data-dir", dir, "--api-port=7443", "--kubelet-port=0"}}
		p.fails("--server=https://HOST:6443", "--token")
		if _, err := os.Stat(dir); err == nil {
			t.Error("it has made its directory")
		}
	})
	t.Run("a wrong setting", func(t *testing.T) {
		p := &process{t: t, args: []string{"--api-port=0", "--data-dir=" + t.TempDir()}}
		p.fails("api-port", "65535")
	})
	t.Run("the directory is a file", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		p := &process{t: t, args: []string{"--data-dir", file, "--api-port=7443", "--kubelet-port=0"}}
		p.fails("data directory")
	})
	t.Run("a directory on a read-only disk", func(t *testing.T) {
		dir := t.TempDir()
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_RDONLY, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) }) //nolint:errcheck // it was mounted
		p := &process{t: t, args: []string{"--data-dir", filepath.Join(dir, "data"), "--api-port=7443", "--kubelet-port=0"}}
		p.fails("data directory", "--data-dir")
	})
}

// The lock of a daemon that is gone may be held for a moment by a process that it has just forked: the next start waits for
// that, and does not take it for another daemon.
func TestLockOfADaemonThatIsGone(t *testing.T) {
	needRoot(t)
	p := newProcess(t)
	p.up()
	p.kill()
	f, err := os.Open(filepath.Join(p.dir, datadir.LockName))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	released := time.AfterFunc(300*time.Millisecond, func() { f.Close() }) //nolint:errcheck // it was only locked
	defer released.Stop()
	p.up()
}

// A full disk under etcd does not end the daemon: writes that fail say so, what is there is read and deleted, a
// pod too, and when there is room everything is written again. What was acknowledged is there.
func TestFullDisk(t *testing.T) {
	needRoot(t)
	p := newProcess(t)
	disk := filepath.Join(p.dir, "etcd")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=96m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Log(p.out.String())
		}
		syscall.Unmount(disk, syscall.MNT_DETACH) //nolint:errcheck // it was mounted
		os.Remove(disk)                           //nolint:errcheck // as above
	})
	c := p.up()
	for _, name := range []string{"web", "drained"} {
		p.create(c, shell(name, forever))
	}
	p.running(c, "web")
	p.running(c, "drained")
	ctx := context.Background()
	var kept []string
	write := func(name string) error {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"k": strings.Repeat("x", 900<<10)}}
		_, err := c.Create(ctx, cm, client.WriteOptions{})
		if err == nil {
			kept = append(kept, name)
		}
		return err
	}
	var err error
	for i := 0; i < 200 && err == nil; i++ {
		err = write(fmt.Sprintf("big-%d", i))
	}
	if err == nil {
		t.Fatal("the disk never filled")
	}
	if status, ok := err.(apierrors.APIStatus); !ok || status.Status().Code != http.StatusInsufficientStorage || !strings.Contains(err.Error(), "disk space") {
		t.Errorf("after %d objects: %v", len(kept), err)
	}
	if err := os.WriteFile(filepath.Join(disk, "hog"), make([]byte, 96<<20), 0o600); err == nil {
		t.Error("there was room for all that")
	}
	gone := func(name string) {
		t.Helper()
		if _, err := c.Delete(ctx, client.Key{Kind: api.ConfigMaps, Namespace: "default", Name: name}, nil); err != nil {
			t.Errorf("a full disk does not delete %s: %v", name, err)
		}
	}
	for len(kept) > 3 {
		gone(kept[0])
		kept = kept[1:]
	}
	if _, err := c.Delete(ctx, client.Key{Kind: api.Pods, Namespace: "default", Name: "web"}, nil); err != nil {
		t.Errorf("a full disk does not delete a pod: %v", err)
	}
	raw, err := remote.New(remote.Config{Socket: filepath.Join(p.dir, "api.sock")})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := raw.Do(ctx, http.MethodPost, "/api/v1/namespaces/default/pods/drained/eviction", nil, "application/json",
		strings.NewReader(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"drained"}}`))
	if err != nil {
		t.Errorf("a full disk does not evict a pod: %v", err)
	} else {
		resp.Body.Close() //nolint:errcheck // its status says all
	}
	p.eventually("the pods gone", func() bool { return p.pod(c, "web") == nil && p.pod(c, "drained") == nil })
	if err := os.Remove(filepath.Join(disk, "hog")); err != nil {
		t.Fatal(err)
	}
	p.eventually("writing again", func() bool { return write("again") == nil })
	p.kill()
	c = p.up()
	for _, name := range kept {
		if _, err := c.Get(ctx, client.Key{Kind: api.ConfigMaps, Namespace: "default", Name: name}); err != nil {
			t.Errorf("an acknowledged object is lost: %v", err)
		}
	}
}

// What /readyz says names every part.
func TestReadyzNamesTheParts(t *testing.T) {
	needRoot(t)
	p := newProcess(t)
	p.up()
	c, err := remote.New(remote.Config{Socket: filepath.Join(p.dir, "api.sock")})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(context.Background(), http.MethodGet, "/readyz", map[string][]string{"verbose": {""}}, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"etcd", "registry", "apiserver", "scheduler", "containerd", "kubelet"} {
		if !strings.Contains(string(b), "[+]"+part+" ok") {
			t.Errorf("nothing of %s in\n%s", part, b)
		}
	}
	var v map[string]string
	resp, err = c.Do(context.Background(), http.MethodGet, "/version", nil, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	// Charts that want kubeVersion >=1.25 refuse a pre-release: there is no - before the +.
	if err := json.NewDecoder(resp.Body).Decode(&v); err != nil || !regexp.MustCompile(`^v1\.\d+\.\d+\+minik8s`).MatchString(v["gitVersion"]) {
		t.Error(err, v)
	}
}
