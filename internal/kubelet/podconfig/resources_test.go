package podconfig

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/plan/plantest"
)

// list is a list of resources; an empty amount is left out.
func list(cpu, memory string) corev1.ResourceList {
	out := corev1.ResourceList{}
	if cpu != "" {
		out[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		out[corev1.ResourceMemory] = resource.MustParse(memory)
	}
	return out
}

// both are limits with requests just as large, as the defaults make them.
func both(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Limits: list(cpu, memory), Requests: list(cpu, memory)}
}

func TestContainerResources(t *testing.T) {
	const mi = 1 << 20
	for _, c := range []struct {
		requests, limits corev1.ResourceList
		want             cri.Resources
	}{
		{nil, nil, cri.Resources{CPUShares: 2}},
		{list("500m", ""), nil, cri.Resources{CPUShares: 512}},
		{list("1m", ""), nil, cri.Resources{CPUShares: 2}},
		{nil, list("2", "64Mi"), cri.Resources{CPUShares: 2048, CPUQuota: 200000, CPUPeriod: 100000, MemoryLimit: 64 * mi}},
		{list("0", ""), list("1", ""), cri.Resources{CPUShares: 2, CPUQuota: 100000, CPUPeriod: 100000}},
		{nil, list("5m", ""), cri.Resources{CPUShares: 5, CPUQuota: 1000, CPUPeriod: 100000}},
		{list("1000", ""), nil, cri.Resources{CPUShares: 262144}},
	} {
		got := containerResources(&corev1.Container{Resources: corev1.ResourceRequirements{Requests: c.requests, Limits: c.limits}})
		if got != c.want {
			t.Errorf("%v %v: %+v, want %+v", c.requests, c.limits, got, c.want)
		}
	}
}

func TestPodResources(t *testing.T) {
	p := plantest.Pod("web", plantest.TwoContainers)
	p.Spec.Containers[0].Resources = both("1", "64Mi")
	if got := PodResources(p); got.CPUQuota != 0 || got.MemoryLimit != 0 || got.CPUShares != 1024 {
		t.Errorf("one of two has limits: %+v", got)
	}
	p.Spec.Containers[1].Resources = both("500m", "64Mi")
	if got := PodResources(p); got.CPUQuota != 150000 || got.MemoryLimit != 128<<20 || got.CPUShares != 1536 {
		t.Errorf("both have: %+v", got)
	}
}

func TestOOMScore(t *testing.T) {
	const capacity = 10 << 30
	p := plantest.Pod("web")
	if got := oomScoreAdj(p, &p.Spec.Containers[0], capacity); got != 1000 {
		t.Errorf("best effort: %d", got)
	}
	p.Spec.Containers[0].Resources.Requests = list("", "1Gi")
	if got := oomScoreAdj(p, &p.Spec.Containers[0], capacity); got != 900 {
		t.Errorf("a tenth: %d", got)
	}
	p.Spec.Containers[0].Resources.Requests = list("", "1")
	if got := oomScoreAdj(p, &p.Spec.Containers[0], capacity); got != 999 {
		t.Errorf("next to nothing: %d", got)
	}
	p.Spec.Containers[0].Resources.Requests = list("", "10Gi")
	if got := oomScoreAdj(p, &p.Spec.Containers[0], capacity); got != 3 {
		t.Errorf("all: %d", got)
	}
	p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: list("1", "1Gi")}
	if got := oomScoreAdj(p, &p.Spec.Containers[0], capacity); got != -997 {
		t.Errorf("guaranteed: %d", got)
	}
	p.Spec.Containers[0].Resources, p.Spec.PriorityClassName = corev1.ResourceRequirements{}, "system-node-critical"
	if got := oomScoreAdj(p, &p.Spec.Containers[0], capacity); got != -997 {
		t.Errorf("critical: %d", got)
	}
}
