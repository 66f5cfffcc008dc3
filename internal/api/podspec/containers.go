package podspec

import (
	corev1 "k8s.io/api/core/v1"
)

// IsSidecar says that an init container is to run as long as the pod.
func IsSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// InitContainer is the init container or sidecar of that name; nil if it is a main container, or none.
func InitContainer(pod *corev1.Pod, name string) *corev1.Container {
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == name {
			return &pod.Spec.InitContainers[i]
		}
	}
	return nil
}

// HasSidecar says that the container of that name is a sidecar.
func HasSidecar(pod *corev1.Pod, name string) bool {
	c := InitContainer(pod, name)
	return c != nil && IsSidecar(c)
}

// Containers is the pod's containers in the order in which they start.
func Containers(pod *corev1.Pod) []*corev1.Container {
	out := make([]*corev1.Container, 0, len(pod.Spec.InitContainers)+len(pod.Spec.Containers))
	for i := range pod.Spec.InitContainers {
		out = append(out, &pod.Spec.InitContainers[i])
	}
	for i := range pod.Spec.Containers {
		out = append(out, &pod.Spec.Containers[i])
	}
	return out
}

// EphemeralContainer is the ephemeral container of that name; nil if it is another's.
func EphemeralContainer(pod *corev1.Pod, name string) *corev1.EphemeralContainer {
	for i := range pod.Spec.EphemeralContainers {
		if pod.Spec.EphemeralContainers[i].Name == name {
			return &pod.Spec.EphemeralContainers[i]
		}
	}
	return nil
}

// AllContainers is the pod's containers of all kinds, the ephemeral ones last.
func AllContainers(pod *corev1.Pod) []*corev1.Container {
	out := Containers(pod)
	for i := range pod.Spec.EphemeralContainers {
		out = append(out, (*corev1.Container)(&pod.Spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	return out
}

// Container is the container of that name, of whatever kind; nil if the pod has none.
func Container(pod *corev1.Pod, name string) *corev1.Container {
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	if e := EphemeralContainer(pod, name); e != nil {
		return (*corev1.Container)(&e.EphemeralContainerCommon)
	}
	return nil
}
