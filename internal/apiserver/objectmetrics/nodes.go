package objectmetrics

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/exposition"
)

const roleLabel = "node-role.kubernetes.io/"

type node = *corev1.Node

var nodes = of[node]{"nodes", func(n node) string { return exposition.Labels("node", n.Name) }, []family[node]{
	gauge("kube_node_info", "Information about a cluster node.", func(p page, n node) {
		i, at := &n.Status.NodeInfo, ""
		for _, a := range n.Status.Addresses {
			if a.Type == corev1.NodeInternalIP {
				at = a.Address
				break
			}
		}
		p.put(1, "kernel_version", i.KernelVersion, "os_image", i.OSImage, "container_runtime_version", i.ContainerRuntimeVersion,
			"kubelet_version", i.KubeletVersion, "kubeproxy_version", "deprecated", "provider_id", n.Spec.ProviderID,
			"pod_cidr", n.Spec.PodCIDR, "system_uuid", i.SystemUUID, "internal_ip", at)
	}),
	created[node]("kube_node"),
	deleted[node]("kube_node"),
	gauge("kube_node_role", "The role of a cluster node.", func(p page, n node) {
		for label := range n.Labels {
			if role, ok := strings.CutPrefix(label, roleLabel); ok {
				p.put(1, "role", role)
			}
		}
	}),
	value("kube_node_spec_unschedulable", "Whether a node can schedule new pods.", func(n node) float64 { return flag(n.Spec.Unschedulable) }),
	gauge("kube_node_spec_taint", "The taint of a cluster node.", func(p page, n node) {
		for _, t := range n.Spec.Taints {
			p.put(1, "key", t.Key, "value", t.Value, "effect", string(t.Effect))
		}
	}),
	gauge("kube_node_status_condition", "The condition of a cluster node.", func(p page, n node) {
		for i := range n.Status.Conditions {
			p.condition(string(n.Status.Conditions[i].Type), n.Status.Conditions[i].Status)
		}
	}),
	gauge("kube_node_status_capacity", "The total amount of resources of a node.", func(p page, n node) { p.amounts(n.Status.Capacity) }),
	gauge("kube_node_status_allocatable", "The resources of a node that are available for scheduling.", func(p page, n node) { p.amounts(n.Status.Allocatable) }),
	gauge("kube_node_status_addresses", "Node address information.", func(p page, n node) {
		for _, a := range n.Status.Addresses {
			p.put(1, "type", string(a.Type), "address", a.Address)
		}
	}),
}}

type namespace = *corev1.Namespace

var namespaces = of[namespace]{"namespaces", func(n namespace) string { return exposition.Labels("namespace", n.Name) }, []family[namespace]{
	created[namespace]("kube_namespace"),
	gauge("kube_namespace_status_phase", "Kubernetes namespace status phase.", func(p page, n namespace) {
		p.oneOf("phase", string(n.Status.Phase), []string{string(corev1.NamespaceActive), string(corev1.NamespaceTerminating)})
	}),
	gauge("kube_namespace_status_condition", "The condition of a namespace.", func(p page, n namespace) {
		for i := range n.Status.Conditions {
			p.condition(string(n.Status.Conditions[i].Type), n.Status.Conditions[i].Status)
		}
	}),
}}
