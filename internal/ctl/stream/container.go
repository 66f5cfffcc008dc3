package stream

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/ctl/exit"
)

// Container finds a container of a pod by its name. With an empty name it is the pod's default container (its annotation
// kubectl.kubernetes.io/default-container, or the only one).
func Container(pod *corev1.Pod, name string) (string, error) {
	var all []string
	for _, c := range podspec.AllContainers(pod) {
		all = append(all, c.Name)
	}
	if name == "" {
		name = podspec.DefaultContainer(pod)
	}
	if name == "" {
		return "", exit.Usagef("pod %s has %d containers: choose one with -c: %s", pod.Name, len(pod.Spec.Containers), strings.Join(all, ", "))
	}
	if podspec.Container(pod, name) != nil {
		return name, nil
	}
	return "", exit.Failf(exit.NotFound, "pod %s has no container %q; it has: %s", pod.Name, name, strings.Join(all, ", "))
}

// HasTTY says whether a container was made with a terminal.
func HasTTY(pod *corev1.Pod, name string) bool {
	c := podspec.Container(pod, name)
	return c != nil && c.TTY
}
