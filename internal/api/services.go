package api

import corev1 "k8s.io/api/core/v1"

// HasClusterIP reports whether a Service has a virtual address of its own, or is to get one: it is neither headless nor
// another name for something outside.
func HasClusterIP(svc *corev1.Service) bool {
	return svc.Spec.Type != corev1.ServiceTypeExternalName && svc.Spec.ClusterIP != corev1.ClusterIPNone
}

// Headless reports whether a Service is only a name for its endpoints.
func Headless(svc *corev1.Service) bool {
	return len(svc.Spec.ClusterIPs) == 1 && svc.Spec.ClusterIPs[0] == corev1.ClusterIPNone ||
		len(svc.Spec.ClusterIPs) == 0 && svc.Spec.ClusterIP == corev1.ClusterIPNone
}

// HasNodePorts reports whether the nodes have ports for a Service.
func HasNodePorts(svc *corev1.Service) bool {
	return svc.Spec.Type == corev1.ServiceTypeNodePort || svc.Spec.Type == corev1.ServiceTypeLoadBalancer
}

// HasHealthCheckPort reports whether the nodes tell a load balancer, on a port of its own, whether they have endpoints of a
// Service.
func HasHealthCheckPort(svc *corev1.Service) bool {
	return svc.Spec.Type == corev1.ServiceTypeLoadBalancer && svc.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

// ReachableFromOutside reports whether a Service has addresses or ports for clients outside of the cluster.
func ReachableFromOutside(svc *corev1.Service) bool {
	return HasNodePorts(svc) || svc.Spec.Type == corev1.ServiceTypeClusterIP && len(svc.Spec.ExternalIPs) > 0
}

// The Service of the API itself, in the namespace default, and that of the cluster's DNS, in kube-system.
const (
	KubernetesService = "kubernetes"
	DNSService        = "kube-dns"
	// DNSProxy is its label service.kubernetes.io/service-proxy-name, as long as every node answers it for its own pods.
	DNSProxy = "minik8s-dns"
)

// Balanced reports whether a Service is a load balancer of the cluster's own: one of a class is another implementation's.
func Balanced(svc *corev1.Service) bool {
	return svc.Spec.Type == corev1.ServiceTypeLoadBalancer && svc.Spec.LoadBalancerClass == nil
}
