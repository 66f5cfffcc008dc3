package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TargetPort is the number of a Service's port in a pod; 0 if its target is a name that no container has for a port of its
// protocol. Init containers that end before the others start do not count.
func TargetPort(p *corev1.ServicePort, pod *corev1.Pod) int32 {
	if p.TargetPort.Type == intstr.Int {
		return p.TargetPort.IntVal
	}
	return NamedPort(pod, p.TargetPort.StrVal, p.Protocol)
}

// NamedPort is the number of the port with this name and protocol; 0 if no container of the pod has it.
func NamedPort(pod *corev1.Pod, name string, protocol corev1.Protocol) int32 {
	for _, c := range Containers(pod) {
		if InitContainer(pod, c.Name) != nil && !IsSidecar(c) {
			continue
		}
		for _, have := range c.Ports {
			if have.Name == name && have.Protocol == protocol {
				return have.ContainerPort
			}
		}
	}
	return 0
}
