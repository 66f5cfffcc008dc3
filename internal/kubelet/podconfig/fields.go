package podconfig

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/cri"
)

// Field is a field of the pod as a fieldRef of a volume names it. It implements volume.Source.
func (b *Builder) Field(pod *corev1.Pod, path string) (string, error) {
	return b.fieldOf(pod, path, nil)
}

// Resource is a request or limit as a resourceFieldRef of a volume names it. It implements volume.Source.
func (b *Builder) Resource(pod *corev1.Pod, r *corev1.ResourceFieldSelector) (string, error) {
	c := podspec.Container(pod, r.ContainerName)
	if c == nil {
		return "", fmt.Errorf("the pod has no container %s", r.ContainerName)
	}
	return resourceOf(c, r, b.Allocatable())
}

// fieldOf is a field of the pod as a fieldRef names it.
func (b *Builder) fieldOf(pod *corev1.Pod, path string, sandbox *cri.Sandbox) (string, error) {
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs":
		return b.NodeIP.String(), nil
	case "status.podIP", "status.podIPs":
		var ips []string
		if sandbox != nil {
			for _, a := range sandbox.Addresses {
				ips = append(ips, a.String())
			}
		}
		if path == "status.podIP" && len(ips) > 1 {
			ips = ips[:1]
		}
		return strings.Join(ips, ","), nil
	}
	switch path { // only for volumes
	case "metadata.labels":
		return listing(pod.Labels), nil
	case "metadata.annotations":
		return listing(pod.Annotations), nil
	}
	for prefix, from := range map[string]map[string]string{"metadata.labels['": pod.Labels, "metadata.annotations['": pod.Annotations} {
		if key, ok := strings.CutPrefix(path, prefix); ok {
			if key, ok = strings.CutSuffix(key, "']"); ok {
				return from[key], nil
			}
		}
	}
	return "", fmt.Errorf("unsupported fieldPath: %v", path)
}

// listing is the content of a file with all labels or annotations: a line each, sorted.
func listing(m map[string]string) string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		lines = append(lines, fmt.Sprintf("%s=%q", key, m[key]))
	}
	return strings.Join(lines, "\n")
}

// resourceOf is what a resourceFieldRef names: a request or limit of the container in units of the divisor, rounded
// up. A cpu or memory limit that is not set is the node's allocatable amount.
func resourceOf(c *corev1.Container, r *corev1.ResourceFieldSelector, allocatable corev1.ResourceList) (string, error) {
	which, name, _ := strings.Cut(r.Resource, ".")
	var list corev1.ResourceList
	switch which {
	case "limits":
		list = c.Resources.Limits
	case "requests":
		list = c.Resources.Requests
	default:
		return "", fmt.Errorf("unsupported resource: %s", r.Resource)
	}
	res := corev1.ResourceName(name)
	switch {
	case res == corev1.ResourceCPU, res == corev1.ResourceMemory, res == corev1.ResourceEphemeralStorage:
	case strings.HasPrefix(name, corev1.ResourceHugePagesPrefix):
	default:
		return "", fmt.Errorf("unsupported resource: %s", r.Resource)
	}
	q, set := list[res]
	if which == "limits" && (!set || q.IsZero()) {
		q = allocatable[res]
	}
	divisor := r.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	if res == corev1.ResourceCPU {
		return fmt.Sprint(ceilDiv(q.MilliValue(), divisor.MilliValue())), nil
	}
	return fmt.Sprint(ceilDiv(q.Value(), divisor.Value())), nil
}

func ceilDiv(a, b int64) int64 {
	if b <= 0 {
		return 0
	}
	return (a + b - 1) / b
}
