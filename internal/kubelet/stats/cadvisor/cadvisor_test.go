package cadvisor_test

import (
	"context"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	client1 "github.com/google/cadvisor/client"
	client2 "github.com/google/cadvisor/client/v2"
	v1 "github.com/google/cadvisor/info/v1"
	v2 "github.com/google/cadvisor/info/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/stats"
	"minik8s/internal/kubelet/stats/cadvisor"
	"minik8s/internal/kubelet/stats/storage"
)

// reader is a node with a pod of one container, of which there are three samples.
type reader struct{ asked stats.Ask }

const (
	pod = "/m/podu"
	id  = "0123456789abcdef"
)

var began = time.Unix(1e9, 0).UTC()

// Read implements cadvisor.Reader.
func (r *reader) Read(_ context.Context, ask stats.Ask) (*stats.Reading, error) {
	r.asked = ask
	series := func(x stats.Series, uses uint64, network *cri.Network) stats.Series {
		for i := range uint64(3) {
			at := stats.Sample{Time: began.Add(time.Duration(i) * time.Second), Network: network}
			at.CPU, at.Memory, at.WorkingSet, at.Processes = (i+1)*uses*1e9, uses<<21, uses<<20, uses
			x.Samples = append(x.Samples, at)
		}
		x.Samples = x.Samples[max(0, 3-max(ask.Samples, 1)):]
		return x
	}
	node := series(stats.Series{Cgroup: "/"}, 3, nil)
	for i := range node.Samples {
		node.Samples[i].Interfaces = []cri.Network{{Interface: "eth1", Received: 7}, {Interface: "br0", Received: 8}}
	}
	return &stats.Reading{
		Node:       node,
		Pods:       []stats.Series{series(stats.Series{PodUID: "u", Cgroup: pod}, 2, &cri.Network{Interface: "eth0", Received: 5, Sent: 6})},
		Containers: []stats.Series{series(stats.Series{PodUID: "u", Container: "c", ContainerID: id, Cgroup: pod + "/" + id, Started: began}, 1, nil)},
	}, nil
}

// clients are cAdvisor's own.
func clients(t *testing.T) (*client1.Client, *client2.Client, *reader) {
	t.Helper()
	r := &reader{}
	s := httptest.NewServer(&cadvisor.Handler{Stats: r, Version: "v1",
		Storage: func() *storage.Reading {
			return &storage.Reading{Data: storage.FileSystem{Device: "/dev/d", Capacity: 1000, Available: 400},
				Mounted:    []storage.FileSystem{{Device: "/dev/d", Type: "ext4", Capacity: 1000, Free: 500, Available: 400}},
				Containers: map[string]*storage.Container{id: {Layer: storage.Use{Bytes: 7}, Log: storage.Use{Bytes: 8}}}}
		},
		Pods: func() []*corev1.Pod {
			return []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "c", Image: "image", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("64Mi")},
					Requests: corev1.ResourceList{"cpu": resource.MustParse("125m")}}}}}}}
		}})
	t.Cleanup(s.Close)
	one, err := client1.NewClient(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	two, err := client2.NewClient(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return one, two, r
}

// What the client of v1.3 asks is answered.
func TestClientOfV1(t *testing.T) {
	c, _, r := clients(t)
	ask := &v1.ContainerInfoRequest{NumStats: 2}
	is := func(what string, x v1.ContainerInfo, samples int) {
		t.Helper()
		if x.Name != pod+"/"+id || x.Namespace != "containerd" || !slices.Equal(x.Aliases, []string{id}) || len(x.Stats) != samples || x.Spec.Image != "image" ||
			x.Spec.Labels["io.kubernetes.pod.name"] != "web" || x.Spec.Labels["io.kubernetes.container.name"] != "c" || !x.Spec.CreationTime.Equal(began) ||
			x.Spec.Cpu != (v1.CpuSpec{Limit: 128, MaxLimit: 250, Quota: 25000, Period: 100000}) || x.Spec.Memory.Limit != 64<<20 {
			t.Fatalf("%s: %+v", what, x)
		}
		last := x.Stats[samples-1]
		if last.Cpu.Usage.Total != 3e9 || last.Memory.WorkingSet != 1<<20 || last.Processes.ThreadsCurrent != 1 || !last.Timestamp.Equal(began.Add(2*time.Second)) {
			t.Errorf("%s: %+v", what, last)
		}
		if len(last.Filesystem) != 1 || last.Filesystem[0].Usage != 15 || last.Filesystem[0].BaseUsage != 7 || last.Filesystem[0].Limit != 1000 {
			t.Errorf("%s: files %+v", what, last.Filesystem)
		}
	}
	one, err := c.ContainerInfo(pod+"/"+id, ask)
	if err != nil {
		t.Fatal(err)
	}
	is("a container", *one, 2)
	if r.asked.Samples != 2 {
		t.Errorf("asked for %+v", r.asked)
	}
	whole, err := c.ContainerInfo(pod, ask)
	if err != nil || len(whole.Subcontainers) != 1 || whole.Subcontainers[0].Name != pod+"/"+id {
		t.Fatalf("a pod: %v, %+v", err, whole)
	}
	if n := whole.Stats[1].Network; n.RxBytes != 5 || n.TxBytes != 6 || len(n.Interfaces) != 1 || n.Interfaces[0].Name != "eth0" || !whole.Spec.HasNetwork {
		t.Errorf("a pod's network: %+v", n)
	}
	root, err := c.ContainerInfo("/", ask)
	if err != nil || len(root.Subcontainers) != 2 || len(root.Stats) != 2 || root.Stats[1].Filesystem[0].Usage != 500 {
		t.Errorf("the machine: %v, %+v", err, root)
	}
	if n := root.Stats[1].Network; n.Name != "eth1" || n.RxBytes != 7 || len(n.Interfaces) != 2 || n.Interfaces[1].RxBytes != 8 || !root.Spec.HasNetwork {
		t.Errorf("the machine's network: %+v", n)
	}
	below, err := c.SubcontainersInfo(pod, ask)
	if err != nil || len(below) != 2 {
		t.Fatalf("all of a pod: %v, %+v", err, below)
	}
	is("all of a pod", below[1], 2)
	if all, err := c.SubcontainersInfo("/", ask); err != nil || len(all) != 3 {
		t.Errorf("all of the machine: %v, %+v", err, all)
	}
	for _, name := range []string{id, id[:12], pod + "/" + id} {
		x, err := c.DockerContainer(name, &v1.ContainerInfoRequest{NumStats: -1})
		if err != nil {
			t.Fatal(name, err)
		}
		is("by the name "+name, x, 3)
	}
	all, err := c.AllDockerContainers(ask)
	if err != nil || len(all) != 1 { // a pod as a whole is none
		t.Fatalf("all containers: %v, %+v", err, all)
	}
	is("all containers", all[0], 2)
	// Only what was measured in a time is sent.
	x, err := c.ContainerInfo(pod, &v1.ContainerInfoRequest{NumStats: 3, Start: began.Add(500 * time.Millisecond), End: began.Add(1500 * time.Millisecond)})
	if err != nil || len(x.Stats) != 1 || !x.Stats[0].Timestamp.Equal(began.Add(time.Second)) {
		t.Errorf("a part of the time: %v, %+v", err, x)
	}
	m, err := c.MachineInfo()
	if err != nil || m.NumCores < 1 || m.MemoryCapacity == 0 || m.BootID == "" || m.NumPhysicalCores < 1 || m.NumSockets < 1 {
		t.Errorf("%v, %+v", err, m)
	}
	for what, err := range map[string]error{"containers": second(c.ContainerInfo("/nothing", ask)), "subcontainers": second(c.SubcontainersInfo("/nothing", ask)),
		"docker": second(c.DockerContainer("nothing", ask)), "short": second(c.DockerContainer(id[:4], ask))} {
		if err == nil || !strings.Contains(err.Error(), "no container or request") {
			t.Errorf("%s that is not there: %v", what, err)
		}
	}
}

// What the client of v2.1 asks is answered.
func TestClientOfV2(t *testing.T) {
	_, c, r := clients(t)
	if version, err := c.VersionInfo(); err != nil || version != `"v1"` { // cAdvisor's client leaves the quotes, and has no line's end
		t.Errorf("version %q, %v", version, err)
	}
	m, err := c.MachineInfo()
	if err != nil || m.NumCores < 1 || m.MemoryCapacity == 0 {
		t.Errorf("%v, %+v", err, m)
	}
	a, err := c.Attributes()
	if err != nil || a.NumCores != m.NumCores || a.MemoryCapacity != m.MemoryCapacity || a.CadvisorVersion != "v1" || a.KernelVersion == "" {
		t.Errorf("%v, %+v", err, a)
	}
	s, err := c.MachineStats()
	if err != nil || len(s) != 3 {
		t.Fatalf("%v, %+v", err, s)
	}
	if x := s[2]; x.Cpu.Usage.Total != 9e9 || x.CpuInst.Usage.Total != 3e9 || x.Memory.WorkingSet != 3<<20 || len(x.Filesystem) != 1 || *x.Filesystem[0].Usage != 500 {
		t.Errorf("the machine: %+v", x)
	}
	if n := s[2].Network; n == nil || len(n.Interfaces) != 2 || n.Interfaces[0].Name != "eth1" || n.Interfaces[1].RxBytes != 8 {
		t.Errorf("the machine's network: %+v", n)
	}
	age := 5 * time.Second
	get := func(name string, ask v2.RequestOptions, want ...string) map[string]v2.ContainerInfo {
		t.Helper()
		all, err := c.Stats(name, &ask)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for cgroup := range all {
			got = append(got, cgroup)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("%s: %v, want %v", name, got, want)
		}
		return all
	}
	x := get(pod+"/"+id, v2.RequestOptions{IdType: v2.TypeName, Count: 2, MaxAge: &age}, pod+"/"+id)[pod+"/"+id]
	if r.asked.Samples != 2 || r.asked.MaxAge != age || r.asked.Rates == 0 {
		t.Errorf("asked for %+v", r.asked)
	}
	if x.Spec.Image != "image" || x.Spec.Memory.Limit != 64<<20 || x.Spec.Cpu.Quota != 25000 || len(x.Stats) != 2 {
		t.Fatalf("%+v", x)
	}
	if last := x.Stats[1]; last.Cpu.Usage.Total != 3e9 || last.CpuInst.Usage.Total != 1e9 || *last.Filesystem.TotalUsageBytes != 15 || *last.Filesystem.BaseUsageBytes != 7 {
		t.Errorf("%+v", last)
	}
	get(pod, v2.RequestOptions{IdType: v2.TypeName, Count: 1}, pod)
	if r.asked.Rates != 0 { // one sample has no rate, and nobody waits for it
		t.Errorf("asked for %+v", r.asked)
	}
	get("/", v2.RequestOptions{IdType: v2.TypeName, Count: 1, Recursive: true}, "/", pod, pod+"/"+id)
	get("/", v2.RequestOptions{IdType: v2.TypeDocker, Count: 1, Recursive: true}, pod+"/"+id)
	get(id, v2.RequestOptions{IdType: v2.TypeDocker, Count: 1}, pod+"/"+id)
	if _, err := c.Stats("/nothing", &v2.RequestOptions{IdType: v2.TypeName, Count: 1}); err == nil || !strings.Contains(err.Error(), "no container or request") {
		t.Errorf("of nothing: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }
