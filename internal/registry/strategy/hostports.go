package strategy

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/api/placement"
	"minik8s/internal/registry"
)

// A node port is a port of every node, so that no pod can have it as a host port: which of the two got a packet would depend on the order
// of the rules. Whoever comes second is refused.

// hostPort is a port of a node that a pod has.
type hostPort struct {
	protocol corev1.Protocol
	port     int32
}

// ended reports whether a pod has no ports any more.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// hostPorts are the ports of the range that pods have, with the name of one that has it.
func (p nodePorts) hostPorts(others registry.Lister) map[hostPort]string {
	var out map[hostPort]string
	for _, obj := range others.List(api.Pods) {
		pod := obj.(*corev1.Pod)
		if ended(pod) {
			continue
		}
		for _, h := range placement.HostPorts(&pod.Spec) {
			if !p.Contains(int(h.Port)) {
				continue
			}
			if out == nil {
				out = map[hostPort]string{}
			}
			out[hostPort{h.Protocol, h.Port}] = nameOf(pod)
		}
	}
	return out
}

// needsHostPorts reports whether a new pod takes ports of the range.
func (p nodePorts) needsHostPorts(pod *corev1.Pod) bool {
	for _, h := range placement.HostPorts(&pod.Spec) {
		if p.Contains(int(h.Port)) {
			return true
		}
	}
	return false
}

// checkHostPorts refuses a new pod whose host ports are Services' node ports.
func (p nodePorts) checkHostPorts(pod *corev1.Pod, others registry.Lister) (errs field.ErrorList) {
	if !p.needsHostPorts(pod) {
		return nil
	}
	check := func(path *field.Path, list []corev1.Container) {
		for i := range list {
			for j, port := range list[i].Ports {
				number := port.HostPort
				if number == 0 && pod.Spec.HostNetwork {
					number = port.ContainerPort
				}
				svc, ok := others.Holder(api.Services, portName(number)).(*corev1.Service)
				if !ok || number == 0 || !nodePortOf(svc, placement.Protocol(port), number) {
					continue
				}
				errs = append(errs, field.Invalid(path.Index(i).Child("ports").Index(j).Child("hostPort"), number,
					fmt.Sprintf("service %s has this port of all nodes as a node port: choose one outside of --service-node-port-range, %s", nameOf(svc), p)))
			}
		}
	}
	spec := field.NewPath("spec")
	check(spec.Child("containers"), pod.Spec.Containers)
	check(spec.Child("initContainers"), pod.Spec.InitContainers)
	return errs
}

// nodePortOf reports whether a Service has a port of the nodes with this protocol.
func nodePortOf(svc *corev1.Service, protocol corev1.Protocol, port int32) bool {
	for _, p := range svc.Spec.Ports {
		if p.NodePort == port && (p.Protocol == protocol || p.Protocol == "" && protocol == corev1.ProtocolTCP) {
			return true
		}
	}
	return svc.Spec.HealthCheckNodePort == port && protocol == corev1.ProtocolTCP
}
