package scrape_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/exposition"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/stats"
	"minik8s/internal/kubelet/stats/scrape"
	"minik8s/internal/kubelet/stats/storage"
)

// The machine's interfaces are rows of the network's metrics, and of no others; no series comes twice.
func TestMachinesInterfaces(t *testing.T) {
	r, pods := reading(2)
	r.Node.Samples[0].Interfaces = []cri.Network{{Interface: "eth0", Received: 7}, {Interface: "eth1", Received: 8}}
	var page strings.Builder
	text := exposition.To(&page)
	disk := &storage.Reading{Mounted: []storage.FileSystem{{Device: "/dev/d", Capacity: 9}}}
	scrape.Containers(text, r, disk, pods, "v1")
	if err := text.Flush(); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(page.String()) {
		series, _, _ := strings.Cut(line, "} ")
		if seen[series] {
			t.Errorf("twice: %s", line)
		}
		seen[series] = true
	}
	for _, want := range []string{`{interface="eth0",container="",id="/",image="",name="",namespace="",pod=""} 7 `,
		`{interface="eth1",container="",id="/",image="",name="",namespace="",pod=""} 8 `,
		`{interface="eth0",container="",id="/m/pod` + r.Pods[0].PodUID + `",image="pause",name="k8s_POD_web-0_default_` + r.Pods[0].PodUID + `_0",namespace="default",pod="web-0"} 5 `} {
		if !strings.Contains(page.String(), "\ncontainer_network_receive_bytes_total"+want) {
			t.Errorf("%s is not there:\n%s", want, page.String())
		}
	}
}

// BenchmarkContainers is /metrics/cadvisor of 100 pods with a container each; the time of sampling is not in it.
func BenchmarkContainers(b *testing.B) {
	r, pods := reading(100)
	b.ReportAllocs()
	for b.Loop() {
		t := exposition.To(io.Discard)
		scrape.Containers(t, r, nil, pods, "v1")
		if err := t.Flush(); err != nil {
			b.Fatal(err)
		}
	}
}

func reading(n int) (*stats.Reading, []*corev1.Pod) {
	at := time.Unix(1e9, 0)
	sample := func(network *cri.Network) []stats.Sample {
		s := stats.Sample{Time: at, Network: network}
		s.CPU, s.UserCPU, s.SystemCPU, s.Memory, s.WorkingSet, s.RSS, s.Periods, s.Processes = 123456789012, 100000000000, 23456789012, 1<<30, 1<<29, 1<<28, 10, 3
		s.Pressure = &cri.Pressure{}
		return []stats.Sample{s}
	}
	r := &stats.Reading{Node: stats.Series{Cgroup: "/", Samples: sample(nil)}}
	var pods []*corev1.Pod
	for i := range n {
		uid := fmt.Sprintf("8a3a7c1e-7f3a-4c3e-9a2b-%012d", i)
		pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("web-", i), Namespace: "default", UID: types.UID(uid)},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "registry.example.org/web:1", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}, Limits: corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("64Mi")}}}}}})
		r.Pods = append(r.Pods, stats.Series{PodUID: uid, Cgroup: "/m/pod" + uid, Started: at, Samples: sample(&cri.Network{Interface: "eth0", Received: 5})})
		id := fmt.Sprintf("%064d", i)
		r.Containers = append(r.Containers, stats.Series{PodUID: uid, Container: "c", ContainerID: id, Cgroup: "/m/pod" + uid + "/" + id, Started: at, Samples: sample(nil)})
	}
	return r, pods
}
