package ctl

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

func uses(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

func TestTop(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{Allocatable: uses("2", "1Gi")}}
	again := func(name string, of ...corev1.ContainerStatus) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": "web"}}, Status: corev1.PodStatus{ContainerStatuses: of}}
	}
	f := newFake(t, node, again("busy", corev1.ContainerStatus{Name: "x", RestartCount: 3}, corev1.ContainerStatus{Name: "y", RestartCount: 4}))
	selectors := ""
	serve := func(path string, v any) {
		f.routes[path] = func(w http.ResponseWriter, r *http.Request) {
			selectors = r.URL.Query().Get("labelSelector")
			json.NewEncoder(w).Encode(v) //nolint:errcheck // the client would say
		}
	}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }
	pods := v1beta1.PodMetricsList{Items: []v1beta1.PodMetrics{
		{ObjectMeta: meta("idle"), Containers: []v1beta1.ContainerMetrics{{Name: "c", Usage: uses("1m", "90Mi")}}},
		{ObjectMeta: meta("busy"), Containers: []v1beta1.ContainerMetrics{{Name: "x", Usage: uses("100m", "1Mi")}, {Name: "y", Usage: uses("200500u", "2Mi")}}},
	}}
	serve("GET /apis/metrics.k8s.io/v1beta1/nodes", v1beta1.NodeMetricsList{Items: []v1beta1.NodeMetrics{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Usage: uses("500m", "512Mi")}}})
	serve("GET /apis/metrics.k8s.io/v1beta1/namespaces/default/pods", pods)
	serve("GET /apis/metrics.k8s.io/v1beta1/pods", pods)
	for args, want := range map[string]string{
		"top nodes":                        "NAME   CPU(cores)   CPU(%)   MEMORY(bytes)   MEMORY(%)\nn1     500m         25%      512Mi           50%\n",
		"top -l app=web --no-headers":      "busy   301m   3Mi    7\nidle   1m     90Mi   0\n",
		"top pods --sort memory -A":        "NAMESPACE   NAME   CPU(cores)   MEMORY(bytes)   RESTARTS\ndefault     idle   1m           90Mi            0\ndefault     busy   301m         3Mi             7\n",
		"top pods busy --containers":       "POD    CONTAINER   CPU(cores)   MEMORY(bytes)   RESTARTS\nbusy   y           201m         2Mi             4\nbusy   x           100m         1Mi             3\n",
		"top containers idle --no-headers": "idle   c   1m   90Mi   0\n",
	} {
		if r := f.ctl("", strings.Fields(args)...); r.code != 0 || r.out != want {
			t.Errorf("%s: %d %s\n%s\nwant\n%s", args, r.code, r.err, r.out, want)
		}
	}
	if r := f.ctl("", "top", "-l", "app=web"); r.code != 0 || selectors != "app=web" {
		t.Error(r.err, selectors)
	}
	for args, code := range map[string]int{"top services": 2, "top --sort size": 2, "top --interval 1ms": 2, "top pods other": 3, "top nodes other": 3} {
		if r := f.ctl("", strings.Fields(args)...); r.code != code {
			t.Errorf("%s: code %d, want %d; %s", args, r.code, code, r.err)
		}
	}
}
