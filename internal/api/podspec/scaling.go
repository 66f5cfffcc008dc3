package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ScalingRequest returns what an autoscaler's utilization of a pod is a percentage of, in thousandths: what one container
// requests, or all that run as long as the pod; where the pod as a whole requests something, its requests. The error names
// what requests nothing. It is Kubernetes' rule: calculateRequests in pkg/controller/podautoscaler.
func ScalingRequest(name string, spec *corev1.PodSpec, container string, resource corev1.ResourceName) (int64, error) {
	if container == "" && wholePodRequests(spec) {
		n, ok := Requests(spec)[resource]
		switch {
		case !ok:
			return 0, fmt.Errorf("missing pod-level request for %s in Pod %s", resource, name)
		case resource == corev1.ResourceCPU:
			return n, nil
		}
		return n * 1000, nil
	}
	var sum int64
	for _, list := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range list {
			c := &list[i]
			if container != "" && c.Name != container || InitOnly(spec, c) {
				continue
			}
			q, ok := c.Resources.Requests[resource]
			if !ok {
				return 0, fmt.Errorf("missing request for %s in container %s of Pod %s", resource, c.Name, name)
			}
			if sum += q.MilliValue(); container != "" {
				return sum, nil
			}
		}
	}
	if container != "" {
		return 0, fmt.Errorf("container %s not found in Pod %s", container, name)
	}
	return sum, nil
}

// InitOnly reports whether a container of a pod is an init container that ends before the others start.
func InitOnly(spec *corev1.PodSpec, c *corev1.Container) bool {
	for i := range spec.InitContainers {
		if &spec.InitContainers[i] == c {
			return !IsSidecar(c)
		}
	}
	return false
}

// wholePodRequests reports whether the pod as a whole requests something that a pod can request.
func wholePodRequests(spec *corev1.PodSpec) bool {
	if spec.Resources == nil {
		return false
	}
	for name := range spec.Resources.Requests {
		if name == corev1.ResourceCPU || name == corev1.ResourceMemory || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
			return true
		}
	}
	return false
}
