package containerd

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/containerd/containerd/cio"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"minik8s/internal/kubelet/cri"
)

func TestACommandThatCannotRunIsExplained(t *testing.T) {
	b := newBench(t)
	if _, err := b.EnsureSandbox(b.ctx, b.sandboxConfig("web")); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		command []string
		code    int32
		message string
	}{
		{[]string{"nosuch"}, 127, `exec: "nosuch": executable file not found in $PATH`},
		{[]string{"/bin/nosuch"}, 127, `exec: "/bin/nosuch": stat /bin/nosuch: no such file or directory`},
		{[]string{"/etc/passwd"}, 126, `exec: "/etc/passwd": permission denied`},
		{[]string{"/etc"}, 126, `exec: "/etc": is a directory`},
	} {
		cfg := b.containerConfig("web", "c", c.command...)
		cfg.Attempt = i
		id, err := b.CreateContainer(b.ctx, cfg)
		if err != nil {
			t.Fatalf("%v: create: %v", c.command, err)
		}
		var start *cri.StartError
		err = b.StartContainer(b.ctx, id)
		if !errors.As(err, &start) || start.ExitCode != c.code || start.Message != c.message {
			t.Errorf("%v: %+v (%v), want %d %q", c.command, start, err, c.code, c.message)
		}
		if got := b.waitExit(id); got.ExitCode != c.code || got.Signal != 0 || got.StartError != c.message {
			t.Errorf("%v: exited with %d, signal %d, %q", c.command, got.ExitCode, got.Signal, got.StartError)
		}
	}
	b.restart()
	p, err := b.Pod(b.ctx, "uid-web")
	if err != nil || len(p.Containers) != 4 || p.Containers[0].State != cri.Exited || p.Containers[0].ExitCode != 127 || p.Containers[0].StartError == "" {
		t.Errorf("after a restart: %+v, %v", p.Containers, err)
	}
}

func TestWhatAContainerIsGiven(t *testing.T) {
	b := newBench(t)
	if _, err := b.EnsureSandbox(b.ctx, b.sandboxConfig("web")); err != nil {
		t.Fatal(err)
	}
	host := t.TempDir()
	if err := os.WriteFile(filepath.Join(host, "f"), []byte("from the host\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cfg := b.containerConfig("web", "c", "sh", "-c")
	cfg.Args = []string{`id -u; id -g; pwd; echo $A; cat /data/f; touch /data/x 2>&1; cat /etc/hostname; hostname; ` +
		`grep NoNewPrivs /proc/self/status; grep Seccomp: /proc/self/status; touch /here && echo writable; ls /dev/shm | wc -l; echo $HOSTNAME; cat /proc/1/oom_score_adj`}
	cfg.Env = []cri.EnvVar{{Name: "A", Value: "b c"}}
	cfg.WorkingDir = "/tmp"
	cfg.Mounts = []cri.Mount{{HostPath: host, ContainerPath: "/data", ReadOnly: true}}
	cfg.OOMScoreAdj = 900
	uid, gid := int64(1000), int64(0)
	cfg.Security.RunAsUser, cfg.Security.RunAsGroup, cfg.Security.NoNewPrivileges = &uid, &gid, true
	cfg.Args[0] = strings.ReplaceAll(cfg.Args[0], "touch /here && echo writable", "touch /tmp/here && echo writable")
	id := b.start(cfg)
	b.waitExit(id)
	want := "1000\n0\n/tmp\nb c\nfrom the host\ntouch: /data/x: Read-only file system\nweb\nweb\nNoNewPrivs:\t1\nSeccomp:\t2\nwritable\n0\nweb\n900\n"
	if got := b.log(id); got != want {
		t.Errorf("it saw\n%s\nwant\n%s", got, want)
	}
}

func TestContainersOfAPodShareItsNamespaces(t *testing.T) {
	b := newBench(t)
	cfg := b.sandboxConfig("web")
	cfg.ShareProcessNamespace = true
	cfg.Sysctls = map[string]string{"net.ipv4.ip_unprivileged_port_start": "99", "kernel.shm_rmid_forced": "1"}
	if _, err := b.EnsureSandbox(b.ctx, cfg); err != nil {
		t.Fatal(err)
	}
	first := b.start(b.containerConfig("web", "server", "sh", "-c", "echo hi > /dev/shm/note; exec httpd -f -p 8080 -h /dev/shm"))
	second := b.start(b.containerConfig("web", "client", "sh", "-c",
		"until wget -qO- http://127.0.0.1:8080/note 2>/dev/null; do :; done; cat /dev/shm/note; ps | grep -c 'http[d]'; cat /proc/sys/net/ipv4/ip_unprivileged_port_start /proc/sys/kernel/shm_rmid_forced; ps | grep -c '/paus[e]'"))
	b.waitExit(second)
	if got, want := b.log(second), "hi\nhi\n1\n99\n1\n1\n"; got != want {
		t.Errorf("the second container saw %q, want %q", got, want)
	}
	b.restart()
	// The pid namespace can still be joined.
	again := b.containerConfig("web", "client", "sh", "-c", "ps | grep -c 'http[d]'")
	again.Attempt = 1
	id := b.start(again)
	b.waitExit(id)
	if got := b.log(id); got != "hi\nhi\n1\n99\n1\n1\n1\n" {
		t.Errorf("after a restart: %q", got)
	}
	if err := b.StopContainer(b.ctx, first, 0); err != nil {
		t.Fatal(err)
	}
	if c := b.waitExit(first); c.Signal != int(unix.SIGKILL) {
		t.Errorf("killed: %+v", c)
	}
}

func TestOutOfMemoryIsReported(t *testing.T) {
	b := newBench(t)
	if _, err := b.EnsureSandbox(b.ctx, b.sandboxConfig("web")); err != nil {
		t.Fatal(err)
	}
	cfg := b.containerConfig("web", "hungry", "tail", "/dev/zero")
	cfg.Resources.MemoryLimit = 16 << 20
	id := b.start(cfg)
	if c := b.waitExit(id); !c.OOMKilled || c.ExitCode != 137 {
		t.Errorf("%+v; want killed for want of memory, 137", c)
	}
}

func TestEndsThatNobodyAskedFor(t *testing.T) {
	b := newBench(t)
	events := b.Events(b.ctx)
	id := b.up("web", "sleep", "1000")
	pid := b.containers.Get(id).Report().Pid
	if err := unix.Kill(int(pid), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if c := b.waitExit(id); c.ExitCode != 137 || c.Signal != 9 || c.OOMKilled {
		t.Errorf("killed from outside: %+v", c)
	}
	for seen := 0; seen < 2; { // its start and its end
		select {
		case e := <-events:
			if e.ContainerID == id {
				seen++
			}
		case <-time.After(20 * time.Second):
			t.Fatal("no event")
		}
	}
	// And while no daemon runs.
	id = b.up("other", "sleep", "1000")
	pid = b.containers.Get(id).Report().Pid
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(int(pid), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the process has gone", func() error {
		if unix.Kill(int(pid), 0) == nil {
			return errors.New("it is there")
		}
		return nil
	})
	b.open()
	if c := b.waitExit(id); c.ExitCode != 137 || c.FinishedAt.IsZero() || c.StartedAt.IsZero() {
		t.Errorf("killed while the daemon was down: %+v", c)
	}
}

// A container that ends while no daemon runs is found with its own exit code, the time of its end, and its last words.
func TestEndsWhileTheDaemonIsDown(t *testing.T) {
	for _, code := range []int32{0, 7} {
		b := newBench(t)
		id := b.up("web", "sh", "-c", fmt.Sprintf("sleep 1; echo goodbye; exit %d", code))
		pid := b.containers.Get(id).Report().Pid
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the process has gone", func() error {
			if unix.Kill(int(pid), 0) == nil {
				return errors.New("it is there")
			}
			return nil
		})
		ended := time.Now()
		b.open()
		c := b.waitExit(id)
		if c.ExitCode != code || c.FinishedAt.After(ended.Add(time.Second)) {
			t.Errorf("ended with %d at %s (seen at %s), want %d", c.ExitCode, c.FinishedAt, ended, code)
		}
		if got := b.log(id); got != "goodbye\n" {
			t.Errorf("its output is %q", got)
		}
	}
}

func TestOutputGoesOnAfterARestart(t *testing.T) {
	b := newBench(t)
	id := b.up("web", "sh", "-c", "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); [ $((i%100)) = 0 ] && sleep 0.05; done; sleep 1000")
	for range 3 {
		b.restart()
	}
	// It must not end while no daemon runs: its output would be lost with its pipe.
	eventually(t, "the last line", func() error {
		if !strings.Contains(b.log(id), "line 1999\n") {
			return errors.New("it is not there")
		}
		return nil
	})
	lines := strings.Split(strings.TrimSpace(b.log(id)), "\n")
	for i, l := range lines {
		if l != fmt.Sprintf("line %d", i) {
			t.Fatalf("line %d is %q", i, l)
		}
	}
	if len(lines) != 2000 {
		t.Errorf("%d lines of 2000", len(lines))
	}
}

// A container whose keeper is killed goes on, also over a restart of the daemon, and its end is seen; only its code is not
// known then.
func TestAContainerOutlivesItsKeeper(t *testing.T) {
	for _, restart := range []bool{false, true} {
		b := newBench(t)
		id := b.up("web", "sh", "-c", "while [ ! -e /tmp/end ]; do sleep 0.02; done; exit 3")
		pid := int(b.containers.Get(id).Report().Pid)
		keeper := parentOf(t, pid)
		if err := unix.Kill(keeper, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the container has another parent", func() error {
			if parentOf(t, pid) == keeper {
				return errors.New("it has not")
			}
			return nil
		})
		if restart {
			b.restart()
		}
		if c := b.containers.Get(id); !c.Running() {
			t.Fatalf("it is %+v", c.Report())
		}
		if code, err := b.Exec(b.ctx, id, cri.ExecConfig{Command: []string{"touch", "/tmp/end"}}); err != nil || code != 0 {
			t.Errorf("exec: %d %v", code, err)
		}
		if c := b.waitExit(id); c.ExitCode != 137 {
			t.Errorf("it ended as %+v", c)
		}
	}
}

func parentOf(t *testing.T, pid int) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	var state string
	var ppid int
	if _, err := fmt.Sscan(string(data[strings.LastIndexByte(string(data), ')')+1:]), &state, &ppid); err != nil {
		t.Fatal(err)
	}
	return ppid
}

func TestPrivilegedAndTerminal(t *testing.T) {
	b := newBench(t)
	if _, err := b.EnsureSandbox(b.ctx, b.sandboxConfig("web")); err != nil {
		t.Fatal(err)
	}
	cfg := b.containerConfig("web", "c", "sh", "-c", "ls /dev/null; tty; mount -t tmpfs x /tmp && echo mounted; grep Seccomp: /proc/self/status")
	cfg.Security = cri.Security{Privileged: true}
	cfg.TTY = true
	id := b.start(cfg)
	b.waitExit(id)
	if got, want := strings.ReplaceAll(b.log(id), "\r", ""), "/dev/null\n/dev/pts/0\nmounted\nSeccomp:\t0\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStats(t *testing.T) {
	b := newBench(t)
	id := b.up("web", "sh", "-c", "while :; do :; done")
	eventually(t, "CPU time", func() error {
		stats, err := b.Stats(b.ctx, func(string) bool { return true })
		if err != nil || len(stats) != 2 {
			return fmt.Errorf("%+v, %v", stats, err)
		}
		slices.SortFunc(stats, func(x, y cri.Stats) int { return len(x.Cgroup) - len(y.Cgroup) }) // the pod as a whole first
		pod, c := stats[0], stats[1]
		if c.ContainerID != id || c.PodUID != "uid-web" || c.CPU == 0 || c.WorkingSet == 0 || c.Processes != 1 || c.Started.IsZero() || c.Network != nil {
			return fmt.Errorf("container %+v", c)
		}
		if pod.ContainerID != "" || pod.PodUID != "uid-web" || pod.CPU < c.CPU || pod.WorkingSet < c.WorkingSet || pod.Network == nil || pod.Network.Interface != "eth0" {
			return fmt.Errorf("pod %+v, network %+v", pod, pod.Network)
		}
		return nil
	})
}

// The counters of a pod's network are not read while nothing crosses its link, and at once when something does, though the pod itself
// does nothing for it: the kernel refuses the connection.
func TestStatsOfQuietNetwork(t *testing.T) {
	b := newBench(t)
	b.up("web", "sleep", "1000")
	var reads atomic.Int32
	var pid uint32
	b.traffic.read = func(p uint32) *cri.Network { reads.Add(1); pid = p; return networkOf(p) }
	look := func() *cri.Network {
		t.Helper()
		stats, err := b.Stats(b.ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(stats, func(s cri.Stats) bool { return s.ContainerID == "" })
		if i < 0 || stats[i].Network == nil {
			t.Fatalf("%+v", stats)
		}
		return stats[i].Network
	}
	eventually(t, "quiet", func() error {
		before := reads.Load()
		if look(); reads.Load() != before {
			return errors.New("it was read")
		}
		return nil
	})
	before := *look()
	addr := netip.AddrPortFrom(b.records.get("uid-web").Sandbox.Addr, 9)
	if conn, err := net.Dial("tcp", addr.String()); err == nil {
		conn.Close() //nolint:errcheck // it should not be there
		t.Fatal("somebody answers")
	}
	after := look()
	if now := networkOf(pid); after.PacketsIn <= before.PacketsIn || after.PacketsOut <= before.PacketsOut || *after != *now {
		t.Errorf("%+v, then %+v; the pod has %+v", before, *after, now)
	}
	// What cannot be seen from outside is seen a little later.
	b.traffic.mu.Lock()
	for link, c := range b.traffic.of {
		c.at = c.at.Add(-stale)
		b.traffic.of[link] = c
	}
	b.traffic.mu.Unlock()
	if was := reads.Load(); *look() != *after || reads.Load() != was+1 {
		t.Errorf("read %d times, not once", reads.Load()-was)
	}
}

func TestStandardInputStaysOpen(t *testing.T) {
	b := newBench(t)
	if _, err := b.EnsureSandbox(b.ctx, b.sandboxConfig("web")); err != nil {
		t.Fatal(err)
	}
	cfg := b.containerConfig("web", "reader", "sh", "-c", "read x; echo got $x")
	cfg.Stdin = true
	id := b.start(cfg)
	// Without, it ends at once; its end shows that the other had the time to.
	other := b.start(b.containerConfig("web", "closed", "sh", "-c", "read x; echo got $x"))
	b.waitExit(other)
	if got := b.log(other); got != "got\n" {
		t.Errorf("without standard input: %q", got)
	}
	if c := b.containers.Get(id).Report(); c.State != cri.Running {
		t.Fatalf("with standard input: %+v", c)
	}
	f, err := os.OpenFile(filepath.Join(b.containerDir(id), "stdin"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("this\n"); err != nil {
		t.Fatal(err)
	}
	b.waitExit(id)
	if got := b.log(id); got != "got this\n" {
		t.Errorf("with standard input: %q", got)
	}
}

func TestStopSignalAndGrace(t *testing.T) {
	b := newBench(t)
	if _, err := b.EnsureSandbox(b.ctx, b.sandboxConfig("web")); err != nil {
		t.Fatal(err)
	}
	ready := func(id string) {
		eventually(t, "it is ready", func() error {
			if b.log(id) != "ready\n" {
				return errors.New("not yet")
			}
			return nil
		})
	}
	cfg := b.containerConfig("web", "polite", "sh", "-c", "trap 'exit 7' USR1; echo ready; while :; do sleep 1000 & wait; done")
	cfg.StopSignal = "SIGUSR1"
	id := b.start(cfg)
	ready(id)
	if err := b.StopContainer(b.ctx, id, time.Minute); err != nil {
		t.Fatal(err)
	}
	if c := b.waitExit(id); c.ExitCode != 7 {
		t.Errorf("its own signal: %+v", c)
	}
	deaf := b.start(b.containerConfig("web", "deaf", "sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1000; done"))
	ready(deaf)
	before := time.Now()
	if err := b.StopContainer(b.ctx, deaf, 300*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if c := b.waitExit(deaf); c.ExitCode != 137 || time.Since(before) < 300*time.Millisecond {
		t.Errorf("after the grace: %+v in %s", c, time.Since(before))
	}
}

// A container that was not started when the daemon was killed does not end by itself later: its start may have been cut off,
// and what then becomes of its process must not count as its failure.
func TestCreatedWhenTheDaemonWasKilled(t *testing.T) {
	b := newBench(t)
	if _, err := b.EnsureSandbox(b.ctx, b.sandboxConfig("new")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.CreateContainer(b.ctx, b.containerConfig("new", "box", "true")); err != nil {
		t.Fatal(err)
	}
	b.restart()
	pod, err := b.Pod(b.ctx, "uid-new")
	if err != nil || len(pod.Containers) != 1 {
		t.Fatalf("after a restart: %+v, %v", pod, err)
	}
	c := b.containers.Get(pod.Containers[0].ID)
	<-c.Exited() // its process has ended, and the event was sent
	if got := c.Report(); got.State != cri.Created {
		t.Errorf("it has ended by itself: %+v", got)
	}
	if err := b.removePod(b.ctx, "uid-new"); err != nil {
		t.Fatal(err)
	}
}

// A container that never ran and is removed has not ended: it must not count as failed.
func TestRemovedBeforeItRanHasNotEnded(t *testing.T) {
	b := newBench(t)
	if _, err := b.EnsureSandbox(b.ctx, b.sandboxConfig("idle")); err != nil {
		t.Fatal(err)
	}
	id, err := b.CreateContainer(b.ctx, b.containerConfig("idle", "box", "true"))
	if err != nil {
		t.Fatal(err)
	}
	c := b.containers.Get(id)
	if err := c.Discard(b.ns(b.ctx)); err != nil {
		t.Fatal(err)
	}
	<-c.Exited() // its process has ended, and the event was sent
	if got := c.Report(); got.State != cri.Created {
		t.Errorf("in the middle of its removal: %+v", got)
	}
	b.restart() // the daemon is killed right here
	if pod, err := b.Pod(b.ctx, "uid-idle"); err != nil || len(pod.Containers) != 0 {
		t.Errorf("after a restart: %+v, %v", pod, err)
	}
	if err := b.removePod(b.ctx, "uid-idle"); err != nil {
		t.Fatal(err)
	}
}

// A container that somebody has paused, as by ctr, ends when it is to; and a process that was added to it, and that its freezing keeps from
// ending, does not hold up the daemon's next start.
func TestPausedIsStopped(t *testing.T) {
	b := newBench(t)
	id := b.up("web", "sleep", "1000")
	// What a daemon leaves that is killed during an exec.
	ctx := b.ns(b.ctx)
	c, err := b.client.LoadContainer(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	task, err := c.Task(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	added, err := task.Exec(ctx, "left", &specs.Process{Args: []string{"sleep", "1000"}, Cwd: "/", Env: []string{"PATH=/bin"}}, cio.NullIO)
	if err != nil {
		t.Fatal(err)
	}
	if err := added.Start(ctx); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(b.Runtime.cfg.RunDir, "containers", id, "exec-left")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"stdout", "stderr"} {
		if err := unix.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := task.Pause(ctx); err != nil {
		t.Fatal(err)
	}

	b.restart()
	if _, err := os.Stat(dir); err != nil && !cgroup2() { // with cgroup v2 a frozen process ends when it is killed
		t.Errorf("the start has waited for the end of what was added: %v", err)
	}
	if err := b.StopContainer(b.ctx, id, 100*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if c := b.waitExit(id); c.ExitCode != 137 {
		t.Errorf("it ended as %+v", c)
	}
	eventually(t, "what was added is gone", func() error {
		if _, err := os.Stat(dir); err == nil {
			return errors.New("its directory is there")
		}
		if unix.Kill(int(added.Pid()), 0) == nil {
			return errors.New("it runs")
		}
		return nil
	})
}

// cgroup2 reports whether the containers' cgroups are of version 2.
func cgroup2() bool {
	_, err := os.Stat("/sys/fs/cgroup/cgroup.controllers")
	return err == nil
}
