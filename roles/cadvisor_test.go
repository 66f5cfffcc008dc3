package roles_test

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	cadvisor1 "github.com/google/cadvisor/client"
	cadvisor2 "github.com/google/cadvisor/client/v2"
	v1 "github.com/google/cadvisor/info/v1"
	v2 "github.com/google/cadvisor/info/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"minik8s/internal/kubelet/cgroup"
	"minik8s/internal/machine"
)

// A real cAdvisor is read by the client that reads our kubelets, and says the same: exactly so of a container that has worked
// and rests, and within what two moments differ of one that works, to whoever asks metrics.k8s.io and to cAdvisor's own clients.
func TestRealCAdvisor(t *testing.T) {
	needRoot(t)
	if _, err := os.Stat(tools + "cadvisor"); err != nil {
		t.Skip("no cAdvisor in build/tools: make test-metrics makes one")
	}
	if cgroup.Unified() {
		t.Skip("the cAdvisor that can be built knows cgroup v1 alone")
	}
	p := newProcess(t)
	c := p.up()
	const load = 0.1 // cores
	busy := shell("busy", "while :; do :; done")
	busy.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	p.create(c, busy)
	p.create(c, shell("rests", `head -c 16000000 /dev/zero > /dev/shm/held; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done; sleep 100000`))
	p.running(c, "busy")
	p.eventually("the work of the other is done", func() bool {
		out, _ := p.command("ctl", "logs", "rests") //nolint:errcheck // it has no container yet
		return strings.Contains(out, "done")
	})
	cadvisor := p.cadvisor()

	type usage struct{ cores, bytes float64 }
	// settled is what metrics.k8s.io says, once the CPU usage of the first moments is over.
	settled := func(of string) map[string]usage {
		t.Helper()
		var got map[string]usage
		defer func() {
			if t.Failed() {
				t.Log(of, "says last", got)
			}
		}()
		p.eventually(of+" says what pods use", func() bool {
			var list metricsv1beta1.PodMetricsList
			got = map[string]usage{}
			if json.Unmarshal([]byte(p.raw("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods")), &list) != nil {
				return false
			}
			for _, m := range list.Items {
				for _, x := range m.Containers {
					got[m.Name] = usage{x.Usage.Cpu().AsApproximateFloat64(), x.Usage.Memory().AsApproximateFloat64()}
				}
			}
			var nodes metricsv1beta1.NodeMetricsList
			if json.Unmarshal([]byte(p.raw("/apis/metrics.k8s.io/v1beta1/nodes")), &nodes) != nil || len(nodes.Items) != 1 {
				return false
			}
			got["the node"] = usage{nodes.Items[0].Usage.Cpu().AsApproximateFloat64(), nodes.Items[0].Usage.Memory().AsApproximateFloat64()}
			return len(got) == 3 && got["the node"].cores > load && math.Abs(got["busy"].cores-load) < load/5 && got["rests"].cores < load/20
		})
		out := ""
		want := regexp.MustCompile(`(?m)^busy +([89]|1[012])[0-9]?m +[0-9]+Mi\s*$`)
		if kubectl, err := exec.LookPath("kubectl"); err == nil {
			p.eventually("kubectl top says so too", func() bool {
				out, _ = says(t, kubectl, "--kubeconfig", filepath.Join(p.dir, "admin.kubeconfig"), "top", "pod", "--no-headers") //nolint:errcheck // it says so
				return want.MatchString(out)
			})
		}
		t.Logf("%s: %v\n%s", of, got, out)
		return got
	}
	ours := settled("the kubelet")
	daemon, err := built()
	if err != nil {
		t.Fatal(err)
	}
	kubelet := newReaders(t, "http://"+serving(t, "Starting to serve", daemon, "ctl", "--data-dir", p.dir, "proxy", "--port=0")+
		"/api/v1/nodes/"+p.pod(c, "busy").Spec.NodeName+"/proxy/")
	real := newReaders(t, "http://127.0.0.1:8090/")

	// The clients find the same of the container that rests.
	var name string
	for cgroup, info := range kubelet.stats("/", true) {
		if info.Spec.Labels["io.kubernetes.pod.name"] == "rests" && info.Spec.Labels["io.kubernetes.container.name"] == "c" {
			name = cgroup
		}
	}
	if name == "" {
		t.Fatal("the container is not there")
	}
	const fuzz = 1 << 20 // the kernel counts pages in batches
	near := func(what string, got, want, by uint64) {
		t.Helper()
		if max(got, want)-min(got, want) > by {
			t.Errorf("%s: %d, cAdvisor says %d", what, got, want)
		}
	}
	same := func(client string, gotCPU, wantCPU v1.CpuUsage, got, want v1.MemoryStats) {
		t.Helper()
		near(client+": cpu", gotCPU.Total, wantCPU.Total, 0)
		near(client+": memory", got.Usage, want.Usage, fuzz)
		near(client+": working set", got.WorkingSet, want.WorkingSet, fuzz)
		near(client+": rss", got.RSS, want.RSS, fuzz)
		if got.WorkingSet < 16e6 || gotCPU.Total < uint64(50*time.Millisecond) {
			t.Errorf("%s: there was no load: %d, %+v", client, gotCPU.Total, got)
		}
	}
	a, b := last(t, kubelet.stats(name, false)[name].Stats), last(t, real.stats(name, false)[name].Stats)
	same("v2", a.Cpu.Usage, b.Cpu.Usage, *a.Memory, *b.Memory)
	for _, ask := range []struct {
		what string
		do   func(r readers) v1.ContainerInfo
	}{
		{"v1 containers", func(r readers) v1.ContainerInfo { return r.container(name) }},
		{"v1 subcontainers", func(r readers) v1.ContainerInfo { return r.below(name) }},
	} {
		g, w := ask.do(kubelet), ask.do(real)
		if g.Name != name || w.Name != name {
			t.Errorf("%s: %q, cAdvisor says %q", ask.what, g.Name, w.Name)
		}
		x, y := last(t, g.Stats), last(t, w.Stats)
		same(ask.what, x.Cpu.Usage, y.Cpu.Usage, x.Memory, y.Memory)
	}
	mine, theirs := kubelet.machine(), real.machine()
	for i := range mine {
		near("cores", uint64(mine[i].NumCores), uint64(theirs[i].NumCores), 0)
		near("memory of the machine", mine[i].MemoryCapacity, theirs[i].MemoryCapacity, 0)
		if mine[i].BootID != theirs[i].BootID || mine[i].MachineID != theirs[i].MachineID {
			t.Errorf("the machine: %+v, cAdvisor says %+v", mine[i], theirs[i])
		}
	}
	if g, w := kubelet.attributes(), real.attributes(); g.KernelVersion != w.KernelVersion || g.MemoryCapacity != w.MemoryCapacity {
		t.Errorf("attributes: %+v, cAdvisor says %+v", g, w)
	}
	x, y := last(t, kubelet.machineStats()), last(t, real.machineStats())
	near("cpu of the machine", x.Cpu.Usage.Total/1e9, y.Cpu.Usage.Total/1e9, 20)     // within the seconds between two looks
	if x.Memory.WorkingSet < y.Memory.WorkingSet-min(y.Memory.WorkingSet, 256<<20) { // here the kernel's own counts, too, as in runc
		t.Errorf("memory of the machine: %d, cAdvisor says %d", x.Memory.WorkingSet, y.Memory.WorkingSet)
	}

	// The daemon reads it, and says the same of its pods.
	p.stop()
	p.args = append(p.args, "--cadvisor=http://{node}:8090")
	p.up()
	others := settled("the cAdvisor")
	for _, pod := range []string{"busy", "rests"} {
		near("memory of "+pod, uint64(ours[pod].bytes), uint64(others[pod].bytes), fuzz)
	}
	if err := cadvisor.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.eventually("without the cAdvisor nothing is known", func() bool {
		return !strings.Contains(p.raw("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"), `"name":"busy"`)
	})
	p.stop()
}

// cadvisor starts one, and waits until it answers. It looks at the machine and the pods of this daemon, and at nothing of others.
func (p *process) cadvisor() *exec.Cmd {
	p.t.Helper()
	var out output
	cmd := exec.Command(tools+"cadvisor", "--port=8090", "--logtostderr", "--docker_only", "--raw_cgroup_prefix_whitelist=/"+filepath.Base(p.dir))
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := machine.StartChild(cmd); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		cmd.Wait()         //nolint:errcheck // it was killed
		if p.t.Failed() {
			p.t.Logf("cAdvisor said:\n%s", out.String())
		}
	})
	p.eventually("cAdvisor answers", func() bool {
		client, err := cadvisor2.NewClient("http://127.0.0.1:8090/")
		if err != nil {
			p.t.Fatal(err)
		}
		all, err := client.Stats("/", &v2.RequestOptions{IdType: v2.TypeName, Count: 1, Recursive: true})
		return err == nil && len(all) > 1
	})
	return cmd
}

// readers are cAdvisor's own clients, of both versions of its API. Questions that fail end the test.
type readers struct {
	t  *testing.T
	v1 *cadvisor1.Client
	v2 *cadvisor2.Client
}

func newReaders(t *testing.T, url string) readers {
	t.Helper()
	a, err := cadvisor1.NewClient(url)
	if err != nil {
		t.Fatal(err)
	}
	b, err := cadvisor2.NewClient(url)
	if err != nil {
		t.Fatal(err)
	}
	return readers{t, a, b}
}

// answered is an answer, if there is one.
func answered[T any](r readers) func(T, error) T {
	return func(x T, err error) T {
		r.t.Helper()
		if err != nil {
			r.t.Fatal(err)
		}
		return x
	}
}

func (r readers) stats(name string, recursive bool) map[string]v2.ContainerInfo {
	r.t.Helper()
	var now time.Duration
	return answered[map[string]v2.ContainerInfo](r)(r.v2.Stats(name, &v2.RequestOptions{IdType: v2.TypeName, Count: 1, Recursive: recursive, MaxAge: &now}))
}

func (r readers) container(name string) v1.ContainerInfo {
	r.t.Helper()
	return *answered[*v1.ContainerInfo](r)(r.v1.ContainerInfo(name, &v1.ContainerInfoRequest{NumStats: 1}))
}

// below is the only container that is a container or below it.
func (r readers) below(name string) v1.ContainerInfo {
	r.t.Helper()
	all := answered[[]v1.ContainerInfo](r)(r.v1.SubcontainersInfo(name, &v1.ContainerInfoRequest{NumStats: 1}))
	if len(all) != 1 {
		r.t.Fatalf("%d containers at %s", len(all), name)
	}
	return all[0]
}

// machine is what either version says.
func (r readers) machine() []*v1.MachineInfo {
	r.t.Helper()
	return []*v1.MachineInfo{answered[*v1.MachineInfo](r)(r.v1.MachineInfo()), answered[*v1.MachineInfo](r)(r.v2.MachineInfo())}
}

func (r readers) attributes() *v2.Attributes {
	r.t.Helper()
	return answered[*v2.Attributes](r)(r.v2.Attributes())
}

func (r readers) machineStats() []v2.MachineStats {
	r.t.Helper()
	return answered[[]v2.MachineStats](r)(r.v2.MachineStats())
}

func last[T any](t *testing.T, list []T) T {
	t.Helper()
	if len(list) == 0 {
		t.Fatal("there is none")
	}
	return list[len(list)-1]
}
