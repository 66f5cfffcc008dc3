package podspec

import corev1 "k8s.io/api/core/v1"

// IsSidecar says that an init container is to run as long as the pod.
func IsSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
