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
	var names, all []string
	for _, c := range pod.Spec.Containers {
		names = append(names, c.Name)
	}
	for _, c := range pod.Spec.InitContainers {
		all = append(all, c.Name)
	}
	all = append(all, names...)
	for _, c := range pod.Spec.EphemeralContainers {
		all = append(all, c.Name)
	}
	if name == "" {
		name = podspec.DefaultContainer(pod)
	}
	if name == "" {
		return "", exit.Usagef("pod %s has %d containers: choose one with -c: %s", pod.Name, len(names), strings.Join(all, ", "))
	}
	for _, n := range all {
		if n == name {
			return n, nil
		}
	}
	return "", exit.Failf(exit.NotFound, "pod %s has no container %q; it has: %s", pod.Name, name, strings.Join(all, ", "))
}

// HasTTY says whether a container was made with a terminal.
func HasTTY(pod *corev1.Pod, name string) bool {
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if list[i].Name == name {
				return list[i].TTY
			}
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if c := &pod.Spec.EphemeralContainers[i]; c.Name == name {
			return c.TTY
		}
	}
	return false
}
