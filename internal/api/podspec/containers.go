package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// IsSidecar reports whether an init container runs as long as the pod.
func IsSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// InitContainer returns the init container or sidecar of that name; nil if there is none.
func InitContainer(pod *corev1.Pod, name string) *corev1.Container {
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == name {
			return &pod.Spec.InitContainers[i]
		}
	}
	return nil
}

// HasSidecar reports whether the container of that name is a sidecar.
func HasSidecar(pod *corev1.Pod, name string) bool {
	c := InitContainer(pod, name)
	return c != nil && IsSidecar(c)
}

// Containers returns the pod's containers in the order in which they start.
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

// EphemeralContainer returns the ephemeral container of that name; nil if there is none.
func EphemeralContainer(pod *corev1.Pod, name string) *corev1.EphemeralContainer {
	for i := range pod.Spec.EphemeralContainers {
		if pod.Spec.EphemeralContainers[i].Name == name {
			return &pod.Spec.EphemeralContainers[i]
		}
	}
	return nil
}

// AllContainers returns the pod's containers of all kinds, the ephemeral ones last.
func AllContainers(pod *corev1.Pod) []*corev1.Container {
	out := Containers(pod)
	for i := range pod.Spec.EphemeralContainers {
		out = append(out, (*corev1.Container)(&pod.Spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	return out
}

// Container returns the container of that name, of any kind; nil if the pod has none.
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

// defaultContainer is the annotation that names the container to use when the user names none. Only clients use it; the
// API server ignores it.
const defaultContainer = "kubectl.kubernetes.io/default-container"

// DefaultContainer returns the container to use when the user names none: the one in the annotation, or the only main
// container; empty if the user has to choose.
func DefaultContainer(pod *corev1.Pod) string {
	if name := pod.Annotations[defaultContainer]; name != "" {
		return name
	}
	if len(pod.Spec.Containers) == 1 {
		return pod.Spec.Containers[0].Name
	}
	return ""
}

// ChooseContainer returns the container for a request for logs, exec or attach: the one it names, of any kind, or the
// only main container. It fails with BadRequest, in Kubernetes' words (pkg/registry/core/pod/strategy.go), if there is
// no such container or there are several to choose from.
func ChooseContainer(pod *corev1.Pod, name string) (string, error) {
	switch {
	case name != "" && Container(pod, name) != nil:
		return name, nil
	case name != "":
		return "", apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", name, pod.Name))
	case len(pod.Spec.Containers) == 1:
		return pod.Spec.Containers[0].Name, nil
	}
	text := fmt.Sprintf("a container name must be specified for pod %s, choose one of: [%s]", pod.Name, namesOf(pod.Spec.Containers))
	if len(pod.Spec.InitContainers) > 0 {
		text += fmt.Sprintf(" or one of the init containers: [%s]", namesOf(pod.Spec.InitContainers))
	}
	return "", apierrors.NewBadRequest(text)
}

func namesOf(list []corev1.Container) string {
	names := make([]string, 0, len(list))
	for i := range list {
		names = append(names, list[i].Name)
	}
	return strings.Join(names, " ")
}
