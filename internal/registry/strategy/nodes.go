package strategy

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/api/defaults"
	"minik8s/internal/api/dialect"
	"minik8s/internal/api/validation"
	"minik8s/internal/registry"
	"minik8s/internal/registry/authorization"
)

func nodeStrategy(cluster netip.Prefix) *registry.Strategy {
	ranges := podRanges{cluster}
	return &registry.Strategy{
		Default: onOne(defaults.Node),
		Validate: checkOne(func(node *corev1.Node) field.ErrorList {
			return append(validation.Node(node), validation.NodeStatus(node)...)
		}),
		BornWithStatus: true, // as in Kubernetes: a node is registered together with its state
		ValidateUpdate: checkStep(validation.NodeUpdate),
		ValidateStatus: checkStep(func(node, _ *corev1.Node) field.ErrorList { return validation.NodeStatus(node) }),
		CopyStatus:     onStep(func(dst, src *corev1.Node) { dst.Status = src.Status }),
		Fields: selectable(map[string]func(*corev1.Node) string{
			"spec.unschedulable": func(n *corev1.Node) string { return strconv.FormatBool(n.Spec.Unschedulable) },
		}),
		Dialect:       dialect.For(api.Nodes),
		Admit:         func(obj api.Object, others registry.Lister) error { return ranges.admit(obj, nil, others) },
		AdmitUpdate:   ranges.admit,
		Exclusive:     ranges.exclusive,
		Author:        bindName,
		Restrict:      restrictNode,
		RestrictAmong: restrictAddresses,
		Essential:     true,
	}
}

// bindName notes in a Node that the machine of a kubelet has its name. A writer who is no kubelet and does not mention
// it leaves it as it is: deleting the Node frees the name.
func bindName(obj, old api.Object, by registry.User) {
	node, before := obj.(*corev1.Node), (*corev1.Node)(nil)
	if old != nil {
		before = old.(*corev1.Node)
	}
	if _, ok := authorization.NodeOf(by); ok || before != nil && node.Annotations[api.MachineKeyAnnotation] == "" {
		authorization.BindName(by, node, before)
	}
}

// restrictNode lets a kubelet write only its own Node, and of it what a kubelet may.
func restrictNode(u registry.User, obj, old api.Object) string {
	if reason := ownOnly("Node")(u, obj, old); reason != "" || obj == nil {
		return reason
	}
	if _, ok := authorization.NodeOf(u); !ok {
		return ""
	}
	before, _ := old.(*corev1.Node)
	return authorization.RestrictNode(u, obj.(*corev1.Node), before)
}

// restrictAddresses says why a kubelet may not claim an address that its Node did not say before: what is sent there would be sent to its
// machine. It may not be a Service's or a DNS object's, nor where a master's API is, nor that of another node that is ready: one
// that is not may have lost it to this one, as when addresses are given anew. A master's kubelet is believed.
func restrictAddresses(u registry.User, obj, old api.Object, others registry.Lister) string {
	own, ok := authorization.NodeOf(u)
	node, is := obj.(*corev1.Node)
	if !ok || !is || slices.Contains(u.Groups, authorization.GroupMasterNodes) {
		return ""
	}
	var before []corev1.NodeAddress
	if was, ok := old.(*corev1.Node); ok {
		before = was.Status.Addresses
	}
	for _, has := range node.Status.Addresses {
		addr, err := netip.ParseAddr(has.Address)
		if err != nil || slices.ContainsFunc(before, func(b corev1.NodeAddress) bool { return b.Address == has.Address }) {
			continue
		}
		if holder := holderOf(addr.Unmap(), others); holder != nil {
			return fmt.Sprintf("a node may not claim %s in its status: %s has it", addr, titleOf(holder))
		}
		for _, obj := range others.List(api.Nodes) {
			other := obj.(*corev1.Node)
			if other.Name == own {
				continue
			}
			if at, err := netip.ParseAddrPort(other.Annotations[api.APIAddressAnnotation]); err == nil && at.Addr() == addr {
				return fmt.Sprintf("a node may not claim %s in its status: there is the API of node %s", addr, other.Name)
			}
			if isReady(other) && slices.ContainsFunc(other.Status.Addresses, func(a corev1.NodeAddress) bool { return a.Address == has.Address }) {
				return fmt.Sprintf("a node may not claim %s in its status: node %s, which is ready, has it", addr, other.Name)
			}
		}
	}
	return ""
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// ownOnly lets a kubelet write only the object of a kind that has its node's name.
func ownOnly(kind string) func(u registry.User, obj, old api.Object) string {
	return func(u registry.User, obj, _ api.Object) string {
		node, ok := authorization.NodeOf(u)
		if ok && obj != nil && obj.GetName() != node {
			return "a node may only use its own " + kind
		}
		return ""
	}
}
