package decide

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/podspec"
)

// basis is of what a utilization is a percentage, for each pod, in thousandths. what says it in words.
type basis struct {
	of   map[string]int64
	what string
}

// basisOf returns what the autoscaler's utilization of a resource is a percentage of.
func (in *Input) basisOf(resource corev1.ResourceName, container string) (basis, error) {
	say := in.Autoscaler.Annotations[api.UtilizationBasisAnnotation]
	if say == api.BasisCapacity {
		return in.capacities(resource, container)
	}
	b := basis{make(map[string]int64, len(in.Pods)), "requested"}
	for _, p := range in.Pods {
		n, err := podspec.ScalingRequest(p.Name, &p.Spec, container, resource)
		if err != nil {
			if say == api.BasisRequestsOrCapacity {
				return in.capacities(resource, container)
			}
			return basis{}, err
		}
		b.of[p.Name] = n
	}
	return b, nil
}

// capacities is the basis of pods that need not request anything: one core each, or the memory that they may use at most. A
// pod that has no node yet has none.
func (in *Input) capacities(resource corev1.ResourceName, container string) (basis, error) {
	b := basis{make(map[string]int64, len(in.Pods)), "of one core each"}
	if resource == corev1.ResourceCPU {
		for _, p := range in.Pods {
			b.of[p.Name] = 1000
		}
		return b, nil
	}
	b.what = "that the pods may use at most"
	for _, p := range in.Pods {
		n, limited := limitOf(p, resource, container)
		switch {
		case limited:
		case p.Spec.NodeName == "":
			continue
		case resource != corev1.ResourceMemory:
			return basis{}, fmt.Errorf("missing limit for %s in Pod %s", resource, p.Name)
		default:
			var known bool
			if in.NodeMemory != nil {
				n, known = in.NodeMemory(p.Spec.NodeName)
			}
			if !known {
				return basis{}, fmt.Errorf("pod %s has no limit for %s, and how much its node %s has is not known", p.Name, resource, p.Spec.NodeName)
			}
		}
		b.of[p.Name] = n * 1000
	}
	return b, nil
}

// limitOf is what a pod, or one of its containers, may use at most, in units.
func limitOf(p *corev1.Pod, resource corev1.ResourceName, container string) (int64, bool) {
	if container == "" {
		return podspec.Limit(&p.Spec, resource)
	}
	if c := podspec.Container(p, container); c != nil {
		if q, ok := c.Resources.Limits[resource]; ok && !q.IsZero() {
			return podspec.Amount(resource, q), true
		}
	}
	return 0, false
}
