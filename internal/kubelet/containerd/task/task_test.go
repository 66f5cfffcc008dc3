package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/containerd/errdefs"
	"github.com/containerd/containerd/events"
	"github.com/containerd/containerd/mount"
	"github.com/containerd/containerd/namespaces"
	"github.com/containerd/containerd/protobuf/types"
	"github.com/containerd/containerd/runtime"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"minik8s/internal/kubelet/cgroup"
	"minik8s/internal/kubelet/containerd/bin"
	"minik8s/internal/machine"
)

// TestMain removes what a test that is cut short leaves behind.
func TestMain(m *testing.M) { machine.Run(m.Run) }

func TestEndsAreRead(t *testing.T) {
	for text, want := range map[string]struct {
		code uint32
		at   time.Time
		ok   bool
		bad  bool
	}{
		"":                                {},
		strings.Repeat(" ", 63) + "\n":    {},
		"0 1700000000.000000005     \n":   {at: time.Unix(1700000000, 5), ok: true},
		"137 1700000000.120000000   \n":   {code: 137, at: time.Unix(1700000000, 120000000), ok: true},
		"137":                             {bad: true},
		"x 1.000000000":                   {bad: true},
		"1 1.000000000 1":                 {bad: true},
		"-1 1700000000.120000000        ": {bad: true},
	} {
		end, ok, err := parseEnd(text)
		if ok != want.ok || (err != nil) != want.bad || end.Status != want.code || !end.Timestamp.Equal(want.at) {
			t.Errorf("%q: %+v, %t, %v", text, end, ok, err)
		}
	}
}

func TestStreamsArePipes(t *testing.T) {
	for uri, want := range map[string]string{"": "", "/run/x/stdout": "/run/x/stdout", "fifo:///run/x": "/run/x"} {
		if got, err := streamPath(uri); err != nil || got != want {
			t.Errorf("%q: %q, %v", uri, got, err)
		}
	}
	for _, uri := range []string{"binary:///usr/bin/logger?id=1", "file:///var/log/x"} {
		if _, err := streamPath(uri); !errdefs.IsNotImplemented(err) {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

func TestARequestHasNoZeroBytes(t *testing.T) {
	if _, err := (request{dir: "/a", command: []string{"runc", "a\x00b"}}).encode(); err == nil {
		t.Error("it was taken")
	}
}

// bed is a Runtime in a directory of its own. At the end nothing may be left.
type bed struct {
	*Runtime
	t      *testing.T
	ctx    context.Context
	cfg    Config
	events *record
	root   string // a file system with a shell
}

// record keeps what is published.
type record struct {
	mu     sync.Mutex
	topics []string
}

func (r *record) Publish(_ context.Context, topic string, _ events.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.topics = append(r.topics, topic)
	return nil
}

func newBed(t *testing.T) *bed {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("containers need root")
	}
	if !bin.Built() {
		t.Skip("runc and the keeper are not built; run deploy/runtime/build.sh")
	}
	shell, err := os.ReadFile("/bin/busybox")
	if err != nil {
		t.Skip("there is no busybox to put into containers; make images installs it")
	}
	dir, err := os.MkdirTemp("", "minik8s-test-")
	if err != nil {
		t.Fatal(err)
	}
	programs, _, err := bin.Unpack(filepath.Join(dir, "bin"))
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{t: t, root: filepath.Join(dir, "root"), events: &record{}, ctx: namespaces.WithNamespace(context.WithoutCancel(t.Context()), "test")}
	for _, d := range []string{"bin", "proc", "tmp", "dev"} {
		if err := os.MkdirAll(filepath.Join(b.root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(b.root, "bin", "busybox"), shell, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sh", "sleep", "cat"} {
		if err := os.Symlink("busybox", filepath.Join(b.root, "bin", name)); err != nil {
			t.Fatal(err)
		}
	}
	b.cfg = Config{State: filepath.Join(dir, "state"), RuncRoot: filepath.Join(dir, "runc"), Runc: programs.Runc, Keeper: programs.Keeper,
		Cgroups: cgroup.New("/" + filepath.Base(dir)), Events: b.events, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	b.open()
	t.Cleanup(func() {
		if err := errors.Join(b.EndAll(b.ctx), b.Close()); err != nil {
			t.Error(err)
		}
		b.eventually("no process of the directory is left", func() error { return nobodyBelow(dir) })
		if left, err := filepath.Glob(filepath.Join(dir, "{state,runc}", "*", "*")); err != nil || len(left) > 0 {
			t.Errorf("left behind: %q, %v", left, err)
		}
		b.eventually("its cgroups are removed", b.cfg.Cgroups.RemoveRoot)
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return b
}

// open makes the Runtime, as a start of the daemon does.
func (b *bed) open() {
	b.t.Helper()
	var err error
	if b.Runtime, err = New(b.cfg); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) eventually(what string, check func() error) {
	b.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); ; <-tick.C {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("not in time: %s: %v", what, err)
		}
	}
}

// nobodyBelow is an error while a process runs a program of a directory.
func nobodyBelow(dir string) error {
	list, err := filepath.Glob("/proc/[0-9]*/exe")
	for _, exe := range list {
		if program, err := os.Readlink(exe); err == nil && strings.HasPrefix(program, dir) {
			return fmt.Errorf("%s: %s", exe, program)
		}
	}
	return err
}

// container is one that runs a script; out is where its output can be read.
func (b *bed) container(id, script string) (opts runtime.CreateOpts, out *os.File) {
	b.t.Helper()
	spec := specs.Spec{Version: "1.0.2", Root: &specs.Root{Path: "rootfs"},
		Process: &specs.Process{Args: []string{"sh", "-c", script}, Env: []string{"PATH=/bin"}, Cwd: "/"},
		Mounts:  []specs.Mount{{Destination: "/proc", Type: "proc", Source: "proc"}, {Destination: "/dev", Type: "tmpfs", Source: "tmpfs"}},
		Linux: &specs.Linux{CgroupsPath: "/" + filepath.Base(filepath.Dir(b.cfg.State)) + "/" + id,
			Namespaces: []specs.LinuxNamespace{{Type: specs.PIDNamespace}, {Type: specs.MountNamespace}}}}
	data, err := json.Marshal(spec)
	if err != nil {
		b.t.Fatal(err)
	}
	pipe := filepath.Join(filepath.Dir(b.cfg.State), id+".out")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		b.t.Fatal(err)
	}
	if out, err = os.OpenFile(pipe, os.O_RDONLY|unix.O_NONBLOCK, 0); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { out.Close() }) //nolint:errcheck // it was only read
	return runtime.CreateOpts{Spec: &types.Any{Value: data}, IO: runtime.IO{Stdout: pipe, Stderr: pipe},
		Rootfs: []mount.Mount{{Type: "bind", Source: b.root, Options: []string{"rbind", "rw"}}}}, out
}

// run makes and starts a container.
func (b *bed) run(id, script string) (*Task, *os.File) {
	b.t.Helper()
	opts, out := b.container(id, script)
	got, err := b.Create(b.ctx, id, opts)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := got.Start(b.ctx); err != nil {
		b.t.Fatal(err)
	}
	return got.(*Task), out
}

func (b *bed) wait(p runtime.Process) *runtime.Exit {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 20*time.Second)
	defer cancel()
	end, err := p.Wait(ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	return end
}

func TestLife(t *testing.T) {
	b := newBed(t)
	began := time.Now()
	task, out := b.run("one", "read line; echo said; exit 7")
	if end := b.wait(task); end.Status != 7 || end.Timestamp.Before(began) || end.Timestamp.After(time.Now()) || end.Pid != task.pid {
		t.Errorf("%+v", end)
	}
	if text, err := io.ReadAll(out); err != nil || string(text) != "said\n" {
		t.Errorf("%q, %v", text, err)
	}
	if err := task.Kill(b.ctx, uint32(unix.SIGTERM), false); !errdefs.IsNotFound(err) {
		t.Errorf("signalling what has ended: %v", err)
	}
	if err := task.Start(b.ctx); !errdefs.IsFailedPrecondition(err) {
		t.Errorf("a second start: %v", err)
	}
	if _, err := b.Delete(b.ctx, "one"); err != nil {
		t.Error(err)
	}
	if _, err := b.Get(b.ctx, "one"); !errdefs.IsNotFound(err) {
		t.Errorf("after its removal: %v", err)
	}
	if want := "/tasks/create /tasks/start /tasks/exit /tasks/delete"; strings.Join(b.events.topics, " ") != want {
		t.Errorf("events: %q", b.events.topics)
	}
}

// What was running, and what has ended, while nobody looked is found; one whose creation was cut off is removed.
func TestFoundAgain(t *testing.T) {
	b := newBed(t)
	running, _ := b.run("running", "while [ ! -e /tmp/end ]; do sleep 0.01; done; exit 3")
	ending, _ := b.run("ending", "while [ ! -e /tmp/over ]; do sleep 0.01; done; exit 4")
	opts, _ := b.container("waiting", "exit 5")
	if _, err := b.Create(b.ctx, "waiting", opts); err != nil {
		t.Fatal(err)
	}
	// As after a kill -9 in the middle of a creation.
	half, _ := b.container("half", "exit 6")
	cut, err := b.Create(b.ctx, "half", half)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(cut.(*Task).dir, "pid")); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	touch(t, filepath.Join(b.root, "tmp", "over"))
	b.wait(ending) // by the old Runtime, which goes on watching
	b.open()
	if _, err := b.Get(b.ctx, "half"); !errdefs.IsNotFound(err) {
		t.Errorf("one that was cut off: %v", err)
	}
	if err := unix.Kill(int(cut.(*Task).pid), 0); err == nil && !zombie(int(cut.(*Task).pid)) {
		t.Error("its process is still there")
	}
	for id, want := range map[string]runtime.State{
		"running": {Status: runtime.RunningStatus, Pid: running.pid},
		"ending":  {Status: runtime.StoppedStatus, Pid: ending.pid, ExitStatus: 4},
		"waiting": {Status: runtime.CreatedStatus},
	} {
		got, err := b.Get(b.ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		s, err := got.State(b.ctx)
		if err != nil || s.Status != want.Status || s.ExitStatus != want.ExitStatus || want.Pid != 0 && s.Pid != want.Pid {
			t.Errorf("%s: %+v, %v", id, s, err)
		}
	}
	touch(t, filepath.Join(b.root, "tmp", "end"))
	again, err := b.Get(b.ctx, "running")
	if err != nil {
		t.Fatal(err)
	}
	if end := b.wait(again); end.Status != 3 {
		t.Errorf("%+v", end)
	}
	waiting, err := b.Get(b.ctx, "waiting")
	if err != nil {
		t.Fatal(err)
	}
	if err := waiting.Start(b.ctx); err != nil {
		t.Fatal(err)
	}
	if end := b.wait(waiting); end.Status != 5 {
		t.Errorf("%+v", end)
	}
}

// What was started runs its program, also if the daemon ends before the process has noticed.
func TestAStartOutlivesTheDaemon(t *testing.T) {
	b := newBed(t)
	opts, out := b.container("slow", "echo said; exit 5")
	got, err := b.Create(b.ctx, "slow", opts)
	if err != nil {
		t.Fatal(err)
	}
	pid := int(got.(*Task).pid)
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(b.ctx)
	cancel()
	if err := got.Start(gone); err != nil {
		t.Fatal(err)
	}
	b.eventually("the gate is open", func() error {
		if b.runc(key{"test", "slow"}).waiting("slow") {
			return errors.New("its name is still there")
		}
		return nil
	})
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	for fd := range 1024 { // nothing of it hangs on what this process has open
		if path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err == nil && strings.Contains(path, "exec.fifo") {
			t.Errorf("descriptor %d is %s", fd, path)
		}
	}
	b.open()
	again, err := b.Get(b.ctx, "slow")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := again.State(b.ctx); err != nil || s.Status != runtime.RunningStatus {
		t.Errorf("%+v, %v", s, err)
	}
	if err := again.Start(b.ctx); !errdefs.IsFailedPrecondition(err) {
		t.Errorf("a second start: %v", err)
	}
	if err := unix.Kill(pid, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if end := b.wait(again); end.Status != 5 {
		t.Errorf("%+v", end)
	}
	if text, err := io.ReadAll(out); err != nil || string(text) != "said\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// A process that has ended before it was started cannot be, also if its keeper still waits for its output to be read.
func TestStartOfWhatHasEnded(t *testing.T) {
	b := newBed(t)
	opts, _ := b.container("dead", "true")
	got, err := b.Create(b.ctx, "dead", opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := got.Kill(b.ctx, uint32(unix.SIGKILL), false); err != nil {
		t.Fatal(err)
	}
	if err := got.Start(b.ctx); !errdefs.IsFailedPrecondition(err) {
		t.Errorf("its start: %v", err)
	}
	if end := b.wait(got); end.Status != 128+uint32(unix.SIGKILL) {
		t.Errorf("%+v", end)
	}
	if err := got.Start(b.ctx); !errdefs.IsFailedPrecondition(err) {
		t.Errorf("its start, once that is known: %v", err)
	}
}

// A keeper that does not obey has not started its container.
func TestStartByAStoppedKeeper(t *testing.T) {
	b := newBed(t)
	defer func(d time.Duration) { startTimeout = d }(startTimeout)
	startTimeout = 100 * time.Millisecond
	opts, _ := b.container("still", "exit 5")
	got, err := b.Create(b.ctx, "still", opts)
	if err != nil {
		t.Fatal(err)
	}
	keeper, err := keeperOf(got.(*Task).dir)
	if err != nil || keeper <= 0 {
		t.Fatal(keeper, err)
	}
	if err := unix.Kill(keeper, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := got.Start(b.ctx); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("its start: %v", err)
	}
	if s, err := got.State(b.ctx); err != nil || s.Status != runtime.CreatedStatus {
		t.Errorf("%+v, %v", s, err)
	}
	if err := unix.Kill(keeper, unix.SIGCONT); err != nil { // it obeys late
		t.Fatal(err)
	}
	if end := b.wait(got); end.Status != 5 {
		t.Errorf("%+v", end)
	}
}

// A container whose keeper was killed cannot be started, and says so.
func TestStartWithoutAKeeper(t *testing.T) {
	b := newBed(t)
	opts, _ := b.container("alone", "true")
	got, err := b.Create(b.ctx, "alone", opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := endKeeper(got.(*Task).dir); err != nil {
		t.Fatal(err)
	}
	if err := got.Start(b.ctx); !errdefs.IsFailedPrecondition(err) {
		t.Errorf("its start: %v", err)
	}
	if s, err := got.State(b.ctx); err != nil || s.Status != runtime.CreatedStatus {
		t.Errorf("%+v, %v", s, err)
	}
	if err := got.Kill(b.ctx, uint32(unix.SIGKILL), false); err != nil {
		t.Error(err)
	}
	if end := b.wait(got); end.Status != lostCode {
		t.Errorf("%+v", end)
	}
}

// A creation fails with runc's own words, and leaves nothing.
func TestFailedCreation(t *testing.T) {
	b := newBed(t)
	opts, _ := b.container("bad", "true")
	opts.Spec = &types.Any{Value: []byte(strings.Replace(string(opts.Spec.GetValue()), `"args":["sh"`, `"args":["no-such-program"`, 1))}
	if _, err := b.Create(b.ctx, "bad", opts); err == nil || !strings.Contains(err.Error(), `"no-such-program": executable file not found`) {
		t.Errorf("%v", err)
	}
	if entries, err := os.ReadDir(filepath.Join(b.cfg.State, "test")); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	for _, id := range []string{"", ".", "..", "a/b", ".hidden"} {
		if _, err := b.Create(b.ctx, id, opts); !errdefs.IsInvalidArgument(err) {
			t.Errorf("%q as a name: %v", id, err)
		}
	}
	good, _ := b.container("good", "true")
	if _, err := b.Create(b.ctx, "bad", good); err != nil {
		t.Errorf("its name cannot be used again: %v", err)
	}
}

// A caller that gives up gets its error at once, and what was being made is removed.
func TestGivenUp(t *testing.T) {
	b := newBed(t)
	for _, after := range []time.Duration{0, time.Millisecond, 4 * time.Millisecond, 10 * time.Millisecond} {
		opts, _ := b.container("x"+after.String(), "sleep 1000")
		ctx, cancel := context.WithTimeout(b.ctx, after)
		_, err := b.Create(ctx, "x", opts)
		cancel()
		if err == nil {
			continue // it was quicker
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", after, err)
		}
		if _, err := b.Get(b.ctx, "x"); !errdefs.IsNotFound(err) {
			t.Errorf("%s: it is there: %v", after, err)
		}
	}
}

// A cgroup in which there is somebody already is no container's, and a failed creation ends nobody there.
func TestForeignCgroup(t *testing.T) {
	b := newBed(t)
	first, _ := b.run("first", "sleep 1000")
	for _, path := range []string{first.cgroup, filepath.Dir(first.cgroup), "/", "/../..", "/a/../b"} {
		opts, _ := b.container("x"+strings.ReplaceAll(path, "/", "_"), "true")
		opts.Spec = &types.Any{Value: []byte(strings.Replace(string(opts.Spec.GetValue()), `"cgroupsPath":"`, `"cgroupsPath":"`+path+`","x":"`, 1))}
		if _, err := b.Create(b.ctx, "second", opts); err == nil {
			t.Errorf("%s: it was made", path)
		}
	}
	if s, err := first.State(b.ctx); err != nil || s.Status != runtime.RunningStatus {
		t.Errorf("the first is %+v, %v", s, err)
	}
}

// A paused container can be killed and removed, also after a restart of the daemon.
func TestPausedIsRemoved(t *testing.T) {
	b := newBed(t)
	task, _ := b.run("paused", "sleep 1000")
	if err := task.Pause(b.ctx); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b.open()
	again, err := b.Get(b.ctx, "paused")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := again.State(b.ctx); err != nil || s.Status != runtime.PausedStatus {
		t.Errorf("it is %+v, %v", s, err)
	}
	if err := again.Kill(b.ctx, uint32(unix.SIGKILL), true); err != nil {
		t.Error(err)
	}
	if end := b.wait(again); end.Status != 137 {
		t.Errorf("%+v", end)
	}
	if _, err := b.Delete(b.ctx, "paused"); err != nil {
		t.Error(err)
	}
}

// As soon as a signal finds that a container has ended, it can be removed.
func TestRemovedAtItsEnd(t *testing.T) {
	b := newBed(t)
	for range 10 {
		task, _ := b.run("brief", "sleep 1000")
		for err := error(nil); err == nil; {
			err = task.Kill(b.ctx, uint32(unix.SIGKILL), false)
		}
		if end, err := b.Delete(b.ctx, "brief"); err != nil || end.Status != 137 {
			t.Fatalf("%+v, %v", end, err)
		}
		if err := os.Remove(task.io.Stdout); err != nil {
			t.Fatal(err)
		}
	}
}

// Who gives up an added process while it is made leaves none.
func TestGivenUpExec(t *testing.T) {
	b := newBed(t)
	task, _ := b.run("host", "sleep 1000")
	spec, err := json.Marshal(specs.Process{Args: []string{"sleep", "2000"}, Env: []string{"PATH=/bin"}, Cwd: "/"})
	if err != nil {
		t.Fatal(err)
	}
	for i, after := range []time.Duration{0, 5 * time.Millisecond, 15 * time.Millisecond} {
		e, err := task.Exec(b.ctx, fmt.Sprint("e", i), runtime.ExecOpts{Spec: &types.Any{Value: spec}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(b.ctx, after)
		err = e.Start(ctx)
		cancel()
		if err == nil {
			if err := e.Kill(b.ctx, uint32(unix.SIGKILL), false); err != nil {
				t.Error(err)
			}
			b.wait(e)
		}
		if _, err := e.Delete(b.ctx); err != nil {
			t.Errorf("%s: %v", after, err)
		}
		b.eventually("it alone is left", func() error {
			if pids := task.processes(); len(pids) != 1 {
				return fmt.Errorf("%v", pids)
			}
			return nil
		})
	}
}

// A nursery that is killed is made again, and what its keepers keep does not notice.
func TestKilledNursery(t *testing.T) {
	b := newBed(t)
	first, _ := b.run("first", "while [ ! -e /tmp/end ]; do sleep 0.01; done; exit 3")
	if err := b.nursery.proc.Kill(); err != nil {
		t.Fatal(err)
	}
	b.eventually("the nursery has ended", func() error {
		if !zombie(b.nursery.proc.Pid) {
			return errors.New("it runs")
		}
		return nil
	})
	second, _ := b.run("second", "exit 4")
	if end := b.wait(second); end.Status != 4 {
		t.Errorf("the second: %+v", end)
	}
	touch(t, filepath.Join(b.root, "tmp", "end"))
	if end := b.wait(first); end.Status != 3 {
		t.Errorf("the first: %+v", end)
	}
}

// A keeper is not in the pod's cgroup, where a limit of memory or processes could end it, nor in the daemon's, and its name in ps
// is its container's.
func TestAKeeperIsApart(t *testing.T) {
	b := newBed(t)
	task, _ := b.run("named", "sleep 1000")
	pid, err := keeperOf(task.dir)
	if err != nil || pid <= 0 {
		t.Fatalf("its keeper is %d, %v", pid, err)
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !strings.Contains(string(line), "named") {
		t.Errorf("its command line is %q, %v", line, err)
	}
	ours := false
	for _, p := range b.cfg.Cgroups.Keepers() {
		ours = ours || p == pid
	}
	if !ours {
		t.Error("it is not in the keepers' cgroup")
	}
	for _, p := range task.processes() {
		if p == pid {
			t.Error("it is in the container's cgroup")
		}
	}
}

// What is written while nobody reads is kept, also after the end, until somebody has read it.
func TestOutputWaits(t *testing.T) {
	b := newBed(t)
	opts, out := b.container("talker", "echo before the end")
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := b.Create(b.ctx, "talker", opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := got.Start(b.ctx); err != nil {
		t.Fatal(err)
	}
	b.wait(got)
	if pid, err := keeperOf(got.(*Task).dir); err != nil || pid == 0 {
		t.Errorf("its keeper did not wait: %v", err)
	}
	f, err := os.OpenFile(opts.IO.Stdout, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	if text, err := io.ReadAll(f); err != nil || string(text) != "before the end\n" {
		t.Errorf("%q, %v", text, err)
	}
	b.eventually("the keeper ends", func() error {
		if pid, err := keeperOf(got.(*Task).dir); err != nil || pid != 0 {
			return fmt.Errorf("it is %d, %v", pid, err)
		}
		return nil
	})
}

func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

// zombie reports whether a process has ended and only waits for its new parent.
func zombie(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(data), ") Z ")
}

// A container is not given a file of the host's as its output: it could read and change it.
func TestAFileIsNoStream(t *testing.T) {
	b := newBed(t)
	file := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(file, []byte("of the host"), 0o600); err != nil {
		t.Fatal(err)
	}
	opts, _ := b.container("one", "id > /proc/self/fd/1")
	for _, uri := range []string{file, "file://" + file, "fifo://" + file} {
		opts.IO.Stdout = uri
		if _, err := b.Create(b.ctx, "one", opts); err == nil {
			t.Errorf("%s was taken", uri)
		}
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "of the host" {
		t.Errorf("the file is %q, %v", data, err)
	}
}
