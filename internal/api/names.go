package api

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
)

// GenerateName adds five random letters to base, as Kubernetes does for metadata.generateName. base is cut so that the
// name is a DNS label.
func GenerateName(base string) string {
	const maxBase = 63 - 5
	if len(base) > maxBase {
		base = base[:maxBase]
	}
	return strings.ToLower(base) + utilrand.String(5)
}

// SystemNamespaces are the namespaces in which every cluster keeps its own objects, with Kubernetes' names.
var SystemNamespaces = []string{metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease}

// SystemObjects returns new copies of the objects that every cluster has: its namespaces and priority classes.
func SystemObjects() []Object {
	var objs []Object
	for _, name := range append([]string{metav1.NamespaceDefault}, SystemNamespaces...) {
		objs = append(objs, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for _, class := range SystemPriorityClasses() {
		objs = append(objs, class)
	}
	return objs
}

// Reasons of a Node's condition NetworkUnavailable: the host's packet filter blocks all traffic of some kind of pods,
// or only part of it, such as one port.
const (
	ReasonHostPacketFilter   = "HostPacketFilter"
	ReasonPodTrafficFiltered = "PodTrafficFiltered"
)

// ReasonDeposed is the reason of the error of a write that was refused because its master does not lead any more.
const ReasonDeposed metav1.StatusReason = "Deposed"

// NetworksAnnotation on a Node has the networks that the machine's links are in, as ranges separated by commas: there it can
// answer for an address. AnnouncedByAnnotation on a Service names the node that does so for the addresses of a load balancer.
const (
	NetworksAnnotation    = "minik8s.io/networks"
	AnnouncedByAnnotation = "minik8s.io/announced-by"
)

// MachineKeyAnnotation on a Node identifies the key (certs.KeyPin) of the machine that has this name. The first kubelet
// that registers under a name gets it; a machine with another key is refused until the Node is deleted.
const MachineKeyAnnotation = "minik8s.io/machine-key"

// ControlPlane is the label of masters' Nodes, and the taint of masters that take no pods. Kubelets of workers may not set
// it.
const ControlPlane = "node-role.kubernetes.io/control-plane"

// APIAddressAnnotation on a master's Node is where its API is reached, HOST:PORT. It counts only beside the label
// ControlPlane, and only a master's own daemon and administrators may set it.
const APIAddressAnnotation = "minik8s.io/api-address"

// OtherMachine says why a machine may not use the name of a Node.
func OtherMachine(node string) string {
	return "the name " + node + " belongs to another machine: choose another with --node-name, or, if that machine is gone or was set up anew, " +
		"free the name with \"minik8sd ctl delete node " + node + "\""
}

// NodeSilent is the reason of a Node's Ready condition False when its kubelet has been silent for a while, and was not heard
// to say so itself.
const NodeSilent = "NodeStatusNotUpdated"
