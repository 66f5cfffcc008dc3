package roles_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// hierarchies are where cgroups are mounted: each controller's of v1, and v2.
func hierarchies(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); strings.Contains(line, " - cgroup") && !slices.Contains(out, f[4]) {
			out = append(out, f[4])
		}
	}
	return out
}

// service is a cgroup in every hierarchy, as systemd has one for each service, and more.
type service struct {
	t    *testing.T
	dirs []string
}

func newService(t *testing.T) *service {
	s := &service{t: t}
	for _, h := range hierarchies(t) {
		dir := filepath.Join(h, fmt.Sprintf("minik8s-service-%d", os.Getpid()))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		s.dirs = append(s.dirs, dir)
		for _, f := range []string{"cpuset.cpus", "cpuset.mems"} {
			if b, err := os.ReadFile(filepath.Join(h, f)); err == nil {
				os.WriteFile(filepath.Join(dir, f), b, 0o644) //nolint:errcheck // v2 has it set already
			}
		}
	}
	t.Cleanup(func() {
		s.kill()
		for _, dir := range s.dirs {
			for len(s.pids(dir)) > 0 { // killed, and about to end
				pause(1e6)
			}
			if err := os.Remove(dir); err != nil {
				t.Error(err)
			}
		}
	})
	return s
}

func (s *service) take(pid int) {
	s.t.Helper()
	for _, dir := range s.dirs {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *service) pids(dir string) []int {
	b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil
	}
	var out []int
	for _, f := range strings.Fields(string(b)) {
		if pid, err := strconv.Atoi(f); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

// kill ends all that is in it in any hierarchy, as KillMode=control-group does.
func (s *service) kill() {
	for _, dir := range s.dirs {
		for _, pid := range s.pids(dir) {
			syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have gone
		}
	}
}

// A service that is ended with all its processes takes the daemon and no pod: not those that were made
// in it, and not those that another start of the daemon had found.
func TestPodsOutliveTheService(t *testing.T) {
	needRoot(t)
	p := newProcess(t)
	c := p.up()
	p.create(c, shell("before", forever))
	p.running(c, "before")
	p.kill()
	s := newService(t)
	p.start()
	s.take(p.cmd.Process.Pid)
	c = p.await()
	p.create(c, shell("inside", forever))
	before, inside := p.running(c, "before"), p.running(c, "inside")
	s.kill()
	<-p.exited
	// A container that has just been started may still be runc's init, about to become its shell. Nobody is there to
	// start one again, so waiting hides none that was ended.
	for deadline := time.Now().Add(10 * time.Second); sleepers(p.dir) < 2; pause(1e6) {
		if time.Now().After(deadline) {
			t.Fatalf("of two pods %d are left", sleepers(p.dir))
		}
	}
	c = p.up()
	for _, was := range []*corev1.Pod{before, inside} {
		is := p.running(c, was.Name).Status.ContainerStatuses[0]
		if is.ContainerID != was.Status.ContainerStatuses[0].ContainerID || is.RestartCount != 0 {
			t.Errorf("%s is %+v", was.Name, is)
		}
	}
}

// reboot ends what a reboot ends: the processes and the file systems in memory.
func (p *process) reboot() {
	p.t.Helper()
	p.kill()
	procs, _ := filepath.Glob("/proc/[0-9]*") //nolint:errcheck // the pattern is good
	for _, proc := range procs {
		b, err := os.ReadFile(proc + "/cgroup")
		if pid, perr := strconv.Atoi(filepath.Base(proc)); err == nil && perr == nil && strings.Contains(string(b), "/"+filepath.Base(p.dir)+"/") {
			unix.Kill(pid, unix.SIGKILL) //nolint:errcheck // it may have gone
		}
	}
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		p.t.Fatal(err)
	}
	for _, line := range slices.Backward(strings.Split(strings.TrimSpace(string(b)), "\n")) {
		if f := strings.Fields(line); strings.HasPrefix(f[4], p.dir+"/") {
			if err := unix.Unmount(f[4], unix.MNT_DETACH); err != nil {
				p.t.Fatal(err)
			}
		}
	}
}

// After a reboot, containers that ran run again at once, ended ones stay ended, and no pod shows an address that is
// not its own.
func TestReboot(t *testing.T) {
	needRoot(t)
	p := newProcess(t)
	c := p.up()
	p.create(c, shell("web", forever))
	p.create(c, shell("crash", "exit 3"))
	half := shell("half", forever)
	half.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	half.Spec.Containers = append(half.Spec.Containers, *half.Spec.Containers[0].DeepCopy())
	half.Spec.Containers[1].Name, half.Spec.Containers[1].Command = "done", []string{"true"}
	p.create(c, half)
	p.running(c, "web")
	status := func(name string, n int) *corev1.ContainerStatus {
		if pod := p.pod(c, name); pod != nil && len(pod.Status.ContainerStatuses) > n {
			return &pod.Status.ContainerStatuses[n]
		}
		return &corev1.ContainerStatus{}
	}
	p.eventually("backing off", func() bool {
		w := status("crash", 0).State.Waiting
		return w != nil && w.Reason == "CrashLoopBackOff"
	})
	p.eventually("half done", func() bool { return status("half", 0).Ready && status("half", 1).State.Terminated != nil })
	p.reboot()
	c = p.up()
	p.create(c, shell("new", forever))
	p.eventually("running again", func() bool { return status("web", 0).RestartCount == 1 && status("web", 0).Ready })
	p.eventually("running too", func() bool { return status("half", 0).RestartCount == 1 && status("half", 0).Ready })
	p.running(c, "new")
	if end := status("web", 0).LastTerminationState.Terminated; end == nil || end.ExitCode != 137 || end.StartedAt.IsZero() || end.FinishedAt.Before(&end.StartedAt) {
		t.Errorf("the web server ended as %+v", end)
	}
	if s := status("half", 1); s.RestartCount != 0 || s.State.Terminated == nil || s.State.Terminated.ExitCode != 0 {
		t.Errorf("what was done is %+v", s)
	}
	owners := map[string]string{}
	for _, name := range []string{"web", "half", "new", "crash"} {
		pod := p.pod(c, name)
		if other, taken := owners[pod.Status.PodIP]; taken {
			t.Errorf("%s and %s show %s", name, other, pod.Status.PodIP)
		}
		owners[pod.Status.PodIP] = name
	}
	if pod := p.pod(c, "crash"); pod.Status.ContainerStatuses[0].State.Waiting != nil && pod.Status.ContainerStatuses[0].RestartCount == 1 && pod.Status.PodIP != "" {
		t.Errorf("before its next attempt it shows %s", pod.Status.PodIP)
	}
}
