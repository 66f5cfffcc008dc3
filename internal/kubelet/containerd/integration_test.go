package containerd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containerd/containerd/snapshots"
	"golang.org/x/sys/unix"

	"minik8s/internal/kubelet/containerd/bin"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/network"
)

// bench is a runtime with a directory and a cgroup of its own, cleaned up at the end of the test.
type bench struct {
	*Runtime
	t   testing.TB
	cfg Config
	ctx context.Context

	network *network.Network
	unkeep  func() // ends its Keep
	// killed says that a runtime was killed while it made a container. Its cgroup may stay until the pod's is removed,
	// with all that is in it, which is the kubelet's work.
	killed bool
}

func newBench(t testing.TB) *bench {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("real containers need root")
	}
	if !bin.Built() {
		t.Skip("runc and the keeper are not built; run deploy/runtime/build.sh")
	}
	dir, err := os.MkdirTemp("", "minik8s-test-")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, ctx: t.Context(), cfg: Config{
		DataDir: dir, NodeName: "node", CgroupRoot: "/" + filepath.Base(dir),
		Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})),
	}}
	t.Cleanup(func() { b.destroy() })
	b.open()
	images := filepath.Join("..", "..", "..", "build", "images")
	if _, err := os.Stat(filepath.Join(images, "stamp")); err != nil {
		t.Skip("the test images are not built; run deploy/images/build.sh")
	}
	names, err := b.ImportDir(b.ctx, images)
	if err != nil {
		t.Fatal(err)
	}
	t.Log("images:", names)
	return b
}

// open makes a network and a runtime on it, as roles does.
func (b *bench) open() {
	b.t.Helper()
	var err error
	b.network, err = network.New(network.Config{PodCIDR: netip.MustParsePrefix("10.88.0.0/20"), Owner: b.cfg.DataDir,
		StateFile: filepath.Join(b.cfg.DataDir, "network.json"), Log: b.cfg.Log})
	if err != nil {
		b.t.Fatal(err)
	}
	b.cfg.Network = b.network
	if b.Runtime, err = New(b.ctx, b.cfg); err != nil {
		b.t.Fatal(err)
	}
	if err := b.network.Setup(b.ctx); err != nil {
		b.t.Fatal(err)
	}
	b.NetworkChanged(b.ctx)
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.ctx))
	kept := make(chan struct{})
	go func() { defer close(kept); b.network.Keep(ctx) }()
	b.unkeep = func() { cancel(); <-kept }
}

// Close ends the runtime and then its network.
func (b *bench) Close() error {
	err := b.Runtime.Close()
	b.unkeep()
	return errors.Join(err, b.network.Close())
}

// restart is what a stop and a start of the daemon are to the runtime.
func (b *bench) restart() {
	b.t.Helper()
	if err := b.Close(); err != nil {
		b.t.Fatal(err)
	}
	b.open()
}

// destroy removes everything and checks that nothing is left.
func (b *bench) destroy() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	defer os.RemoveAll(b.cfg.DataDir)
	if b.Runtime == nil {
		return
	}
	if err := errors.Join(b.Uninstall(ctx), b.network.Teardown(ctx)); err != nil {
		b.t.Error(err)
	}
	b.leftovers()
	if err := b.Close(); err != nil {
		b.t.Error(err)
	}
	b.processesEnd(false)
	for _, beside := range []string{"", "-keepers", "-self"} { // -self is the benchmark's
		name := b.cfg.CgroupRoot + beside
		dirs, err := filepath.Glob(filepath.Join("/sys/fs/cgroup/*", name))
		if err != nil {
			b.t.Error(err)
		}
		if v2 := filepath.Join("/sys/fs/cgroup", name); exists(v2) {
			dirs = append(dirs, v2)
		}
		for _, dir := range dirs {
			if err := removeCgroup(dir); err != nil {
				b.t.Error("left behind, a cgroup:", err)
			}
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// containerDir is where a container's pipes and state are.
func (b *bench) containerDir(id string) string {
	return filepath.Join(b.Runtime.cfg.RunDir, "containers", id)
}

// removeCgroup removes a cgroup and those below it. The kernel may still be ending the last process.
func removeCgroup(dir string) (err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, removeCgroup(filepath.Join(dir, e.Name())))
		}
	}
	for end := time.Now().Add(5 * time.Second); err == nil; time.Sleep(2 * time.Millisecond) {
		rerr := unix.Rmdir(dir)
		if rerr == nil || errors.Is(rerr, unix.ENOENT) {
			return nil
		}
		if !errors.Is(rerr, unix.EBUSY) || time.Now().After(end) {
			return fmt.Errorf("%s: %w", dir, rerr)
		}
	}
	return err
}

// leftovers fails the test for each trace of a pod.
func (b *bench) leftovers() {
	b.t.Helper()
	if data, err := os.ReadFile("/proc/self/mountinfo"); err != nil {
		b.t.Error(err)
	} else {
		for line := range strings.Lines(string(data)) {
			if strings.Contains(line, b.cfg.DataDir) && !strings.Contains(line, "minik8s-run") {
				b.t.Errorf("left behind, a mount: %s", line)
			}
		}
	}
	for _, d := range []string{"slots", "sandboxes", "containers", "containerd/io.containerd.runtime.v2.task/minik8s", "runc/minik8s"} {
		entries, err := os.ReadDir(filepath.Join(b.Runtime.cfg.RunDir, d))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			b.t.Error(err)
		}
		for _, e := range entries {
			b.t.Errorf("left behind: %s/%s", d, e.Name())
		}
	}
	err := b.client.SnapshotService(b.containerd.Snapshotter).Walk(b.ns(context.Background()), func(_ context.Context, i snapshots.Info) error {
		if i.Kind != snapshots.KindCommitted {
			b.t.Errorf("left behind, a snapshot: %s", i.Name)
		}
		return nil
	})
	if err != nil {
		b.t.Error(err)
	}
	cgroups, err := filepath.Glob(filepath.Join("/sys/fs/cgroup/*", b.cfg.CgroupRoot, "*/*"))
	if err != nil {
		b.t.Error(err)
	}
	for _, c := range cgroups {
		if st, err := os.Stat(c); err == nil && st.IsDir() && !b.killed {
			b.t.Errorf("left behind, a cgroup: %s", c)
		}
	}
	b.processesEnd(true)
	eventually(b.t, "all veths are gone", func() error {
		links, err := net.Interfaces()
		for _, l := range links {
			if strings.HasPrefix(l.Name, b.network.LinkName("00000000")[:len("mk0000")]) {
				return errors.New(l.Name)
			}
		}
		return err
	})
}

// processesEnd waits until no process has the test's directory in its command line. The nursery, a keeper that keeps nothing,
// ends with the runtime.
func (b *bench) processesEnd(nursery bool) {
	b.t.Helper()
	eventually(b.t, "all processes have ended", func() error {
		procs, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			return err
		}
		for _, p := range procs {
			line, err := os.ReadFile(p)
			if err != nil || !strings.Contains(string(line), b.cfg.DataDir) {
				continue
			}
			if !nursery || !strings.HasSuffix(strings.TrimRight(string(line), " \x00"), "/bin/keeper") {
				return fmt.Errorf("%s: %q", p, line)
			}
		}
		return nil
	})
}

// eventually waits for what the kernel does asynchronously.
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

func (b *bench) sandboxConfig(name string) cri.SandboxConfig {
	return cri.SandboxConfig{
		PodUID: "uid-" + name, PodNamespace: "default", PodName: name, Hostname: name,
		CgroupParent: filepath.Join(b.cfg.CgroupRoot, "pod"+name),
	}
}

func (b *bench) containerConfig(pod, name string, command ...string) cri.ContainerConfig {
	return cri.ContainerConfig{
		PodUID: "uid-" + pod, PodNamespace: "default", PodName: pod, Name: name, Image: "busybox", Command: command,
		LogPath: filepath.Join(b.cfg.DataDir, "logs", pod, name, "0.log"), Security: cri.Security{MaskProc: true},
	}
}

// up makes a pod of one container and starts it.
func (b *bench) up(pod string, command ...string) string {
	b.t.Helper()
	if _, err := b.EnsureSandbox(b.ctx, b.sandboxConfig(pod)); err != nil {
		b.t.Fatal(err)
	}
	return b.start(b.containerConfig(pod, "c", command...))
}

func (b *bench) start(cfg cri.ContainerConfig) string {
	b.t.Helper()
	id, err := b.CreateContainer(b.ctx, cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.StartContainer(b.ctx, id); err != nil {
		b.t.Fatal(err)
	}
	return id
}

// waitExit waits for a container's end, by events.
func (b *bench) waitExit(id string) cri.Container {
	b.t.Helper()
	c := b.containers.Get(id)
	if c == nil {
		b.t.Fatalf("no container %s", id)
	}
	select {
	case <-c.Exited():
	case <-time.After(20 * time.Second):
		b.t.Fatalf("container %s did not end", c.Meta.Name)
	}
	return c.Report()
}

func (b *bench) log(id string) string {
	b.t.Helper()
	data, err := os.ReadFile(b.containers.Get(id).Meta.LogPath)
	if err != nil {
		b.t.Fatal(err)
	}
	var text strings.Builder
	for line := range strings.Lines(string(data)) {
		f := strings.SplitN(line, " ", 4)
		if len(f) != 4 {
			b.t.Fatalf("not in the CRI format: %q", line)
		}
		text.WriteString(f[3])
	}
	return text.String()
}

func TestAPodRuns(t *testing.T) {
	b := newBench(t)
	id := b.up("web", "sh", "-c", "hostname; ip addr show eth0; cat /etc/hosts; echo oops >&2; exit 3")
	c := b.waitExit(id)
	if c.ExitCode != 3 {
		t.Errorf("exit code %d, want 3", c.ExitCode)
	}
	t.Log(b.log(id))
}
