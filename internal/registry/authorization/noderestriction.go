package authorization

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"minik8s/internal/api"
)

// KeyExtra is the key of User.Extra with the certs.KeyPin of the key by which a kubelet authenticated.
const KeyExtra = "minik8s.io/machine-key"

func machineKey(u User) string {
	if v := u.Extra[KeyExtra]; len(v) == 1 {
		return v[0]
	}
	return ""
}

// BindName notes in a Node that a kubelet writes that its name belongs to the kubelet's machine, if it belongs to nobody
// yet. Whatever the kubelet itself wrote there does not count. old is nil for a new Node.
func BindName(u User, node, old *corev1.Node) {
	key := machineKey(u)
	if old != nil && old.Annotations[api.MachineKeyAnnotation] != "" {
		key = old.Annotations[api.MachineKeyAnnotation]
	}
	if node.Annotations[api.MachineKeyAnnotation] == key {
		return
	}
	node.Annotations = maps.Clone(node.Annotations)
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	if node.Annotations[api.MachineKeyAnnotation] = key; key == "" {
		delete(node.Annotations, api.MachineKeyAnnotation)
	}
}

// RestrictNode says why a kubelet may not write this into its own Node; empty: it may. It is what Kubernetes' admission
// plugin NodeRestriction checks, and that the name is this machine's; and that it makes itself no master, though a machine
// that was one may say that it is none any more. old is nil for a new Node.
func RestrictNode(u User, node, old *corev1.Node) string {
	if key := machineKey(u); key != "" && node.Annotations[api.MachineKeyAnnotation] != key {
		return api.OtherMachine(node.Name)
	}
	if slices.Contains(u.Groups, GroupMasterNodes) {
		return ""
	}
	//lint:ignore SA1019 nothing here reads it, and nothing shall find it there either
	if node.Spec.ConfigSource != nil && (old == nil || !equality.Semantic.DeepEqual(node.Spec.ConfigSource, old.Spec.ConfigSource)) {
		return "a node may not set its own spec.configSource"
	}
	var labels map[string]string
	if old != nil {
		labels = old.Labels
		if !equality.Semantic.DeepEqual(node.Spec.Taints, old.Spec.Taints) {
			return "a node may not change its own taints"
		}
		if !equality.Semantic.DeepEqual(node.OwnerReferences, old.OwnerReferences) {
			return "a node may not change its own ownerReferences"
		}
	}
	for _, cidr := range node.Spec.PodCIDRs {
		if p, err := netip.ParsePrefix(cidr); old == nil && err == nil && p.Addr().Is4() && p.Bits() < widest {
			return fmt.Sprintf("a node may not ask for more than a /%d of pod addresses: an administrator may make the Node before", widest)
		}
	}
	var before string
	if old != nil {
		before = old.Annotations[api.APIAddressAnnotation]
	}
	now := node.Annotations[api.APIAddressAnnotation]
	if now != "" && now != before {
		return "a node that is no master may not announce an API by its annotation " + api.APIAddressAnnotation
	}
	if _, master := node.Labels[api.ControlPlane]; before != "" && now == "" && !master {
		// The machine was a master, and says that it is none any more.
		labels = maps.Clone(labels)
		delete(labels, api.ControlPlane)
	}
	if forbidden := changedLabels(labels, node.Labels); len(forbidden) > 0 {
		return "a node may not set its own labels " + strings.Join(forbidden, ", ") + ": an administrator may"
	}
	return ""
}

// widest is the widest range of pod addresses that a kubelet may ask for, in bits of its prefix: 16 nodes' worth.
const widest = 20

// changedLabels are the labels that differ and that a kubelet may not set.
func changedLabels(old, now map[string]string) []string {
	var out []string
	for k, v := range now {
		if have, ok := old[k]; (!ok || have != v) && !mayLabel(k) {
			out = append(out, k)
		}
	}
	for k := range old {
		if _, ok := now[k]; !ok && !mayLabel(k) {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// mayLabel reports whether a kubelet may set a label on its own Node, as in Kubernetes: any whose prefix is not
// Kubernetes', and those of Kubernetes' that describe the machine.
func mayLabel(key string) bool {
	prefix, _, ok := strings.Cut(key, "/")
	if !ok {
		return true
	}
	in := func(domain string) bool { return prefix == domain || strings.HasSuffix(prefix, "."+domain) }
	switch {
	case in("node-restriction.kubernetes.io"):
		return false
	case in("kubelet.kubernetes.io"), in("node.kubernetes.io"):
		return true
	case in("kubernetes.io"), in("k8s.io"):
		return slices.Contains(ownLabels, key)
	}
	return true
}

var ownLabels = []string{
	corev1.LabelHostname, corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaZone,
	corev1.LabelFailureDomainBetaRegion, corev1.LabelInstanceType, corev1.LabelInstanceTypeStable, corev1.LabelOSStable,
	corev1.LabelArchStable, "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
}
