// Package cadvisor compares what a real cAdvisor says of a cgroup with what ours says, both asked through cAdvisor's own client.
package cadvisor

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/cadvisor/cache/memory"
	client "github.com/google/cadvisor/client/v2"
	"github.com/google/cadvisor/container"
	info "github.com/google/cadvisor/info/v2"
	"github.com/google/cadvisor/manager"
	"github.com/google/cadvisor/utils/sysfs"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/cgroup"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/stats"
	ours "minik8s/internal/kubelet/stats/cadvisor"
	"minik8s/internal/kubelet/stats/storage"
)

// load marks the run of the test's program that uses CPU, memory and files.
const load = "CADVISOR_TEST_LOAD"

func TestMain(m *testing.M) {
	if os.Getenv(load) == "" {
		os.Exit(m.Run())
	}
	held := make([]byte, 32<<20)
	for i := 0; ; i++ {
		held[i*4096%len(held)]++
		if i == len(held)/4096 {
			fmt.Println("all is held")
		}
	}
}

// source is a runtime with one container, in a cgroup.
type source struct{ cgroup string }

func (s source) Stats(context.Context, func(string) bool) ([]cri.Stats, error) {
	x := cri.Stats{PodUID: "u", Container: "c", ContainerID: filepath.Base(s.cgroup), Cgroup: s.cgroup, Time: time.Now()}
	cgroup.NewReader(cgroup.Mounted, cgroup.Unified()).Read(s.cgroup, &x.Usage)
	return []cri.Stats{x}, nil
}

// real answers the question of the client that we ask, with what a cAdvisor of this machine knows: the handlers of its own
// program cannot be imported.
func real(t *testing.T) http.Handler {
	t.Helper()
	day := 24 * time.Hour
	dynamic := false
	m, err := manager.New(memory.New(time.Minute, nil), sysfs.NewRealSysFs(), manager.HousekeepingConfig{Interval: &day, AllowDynamic: &dynamic},
		container.MetricSet{container.CpuUsageMetrics: {}, container.MemoryUsageMetrics: {}, container.ProcessMetrics: {}, container.DiskIOMetrics: {}},
		http.DefaultClient, []string{"/"}, nil, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Stop() }) //nolint:errcheck // the test is over
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/api/v2.1/stats")
		var now time.Duration
		found, err := m.GetRequestedContainersInfo(name, info.RequestOptions{IdType: info.TypeName, Count: 1, MaxAge: &now})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		out := map[string]info.ContainerInfo{}
		for name, c := range found {
			out[name] = info.ContainerInfo{Spec: info.ContainerSpecFromV1(&c.Spec, c.Aliases, c.Namespace), Stats: info.ContainerStatsFromV1(name, &c.Spec, c.Stats)}
		}
		json.NewEncoder(w).Encode(out) //nolint:errcheck // the client notices
	})
}

// A container whose program was stopped uses what it has used: both say the same number.
func TestSameAnswers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a cgroup needs root")
	}
	group := fmt.Sprintf("/minik8s-oracle-%d", os.Getpid())
	cmd := start(t, group)
	theirs := httptest.NewServer(real(t))
	defer theirs.Close()
	sampler := stats.New(source{group})
	mine := httptest.NewServer(&ours.Handler{Stats: sampler, Storage: func() *storage.Reading { return nil }, Pods: func() []*corev1.Pod { return nil }})
	defer mine.Close()

	time.Sleep(time.Second) // the load
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	ask := func(s *httptest.Server) *info.ContainerStats {
		t.Helper()
		c, err := client.NewClient(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		var age time.Duration
		all, err := c.Stats(group, &info.RequestOptions{IdType: info.TypeName, Count: 1, MaxAge: &age})
		if err != nil {
			t.Fatal(err)
		}
		one, ok := all[group]
		if !ok || len(one.Stats) == 0 {
			t.Fatalf("nothing of %s: %v", group, all)
		}
		return one.Stats[len(one.Stats)-1]
	}
	want, got := ask(theirs), ask(mine)
	for _, x := range []struct {
		what      string
		got, want uint64
	}{
		{"cpu", got.Cpu.Usage.Total, want.Cpu.Usage.Total},
		{"user", got.Cpu.Usage.User, want.Cpu.Usage.User},
		{"system", got.Cpu.Usage.System, want.Cpu.Usage.System},
		{"memory", got.Memory.Usage, want.Memory.Usage},
		{"working set", got.Memory.WorkingSet, want.Memory.WorkingSet},
		{"peak", got.Memory.MaxUsage, want.Memory.MaxUsage},
		{"rss", got.Memory.RSS, want.Memory.RSS},
		{"cache", got.Memory.Cache, want.Memory.Cache},
		{"mapped", got.Memory.MappedFile, want.Memory.MappedFile},
		{"faults", got.Memory.ContainerData.Pgfault, want.Memory.ContainerData.Pgfault},
		{"threads", got.Processes.ThreadsCurrent, want.Processes.ThreadsCurrent},
	} {
		if x.got != x.want {
			t.Errorf("%s: %d, cAdvisor says %d", x.what, x.got, x.want)
		}
	}
	if want.Cpu.Usage.Total < uint64(500*time.Millisecond)/4 || want.Memory.RSS < 32<<20 {
		t.Errorf("there was no load: %+v", want.Cpu.Usage)
	}
}

// start runs the load in a cgroup of its own, in every hierarchy.
func start(t *testing.T, group string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), load+"=1", "GOMAXPROCS=1", "GOGC=off")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	dirs := []string{filepath.Join(cgroup.Mounted, group)}
	if !cgroup.Unified() {
		if dirs, err = filepath.Glob(cgroup.Mounted + "/*/cgroup.procs"); err != nil || len(dirs) == 0 {
			t.Skip("no cgroups here")
		}
		for i := range dirs {
			dirs[i] = filepath.Join(filepath.Dir(dirs[i]), group)
		}
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Skip("no cgroup can be made here: ", err)
		}
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} { // of v1: nothing runs where they are empty
			if value, err := os.ReadFile(filepath.Join(filepath.Dir(dir), file)); err == nil {
				os.WriteFile(filepath.Join(dir, file), value, 0o644) //nolint:errcheck // the next write fails then
			}
		}
	}
	t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		cmd.Wait()         //nolint:errcheck // killed
		for _, dir := range dirs {
			for end := time.Now().Add(5 * time.Second); os.Remove(dir) != nil; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Errorf("%s stays", dir)
					break
				}
			}
		}
	})
	// The shell enters the cgroups and becomes the program, so that all of it is counted.
	script := ""
	for _, dir := range dirs {
		script += "echo $$ > " + strconv.Quote(filepath.Join(dir, "cgroup.procs")) + "; "
	}
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", script + "exec " + strconv.Quote(os.Args[0])}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return cmd
}
