package strategy

import (
	"fmt"
	"net/netip"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/api/defaults"
	"minik8s/internal/api/dialect"
	"minik8s/internal/api/validation"
	"minik8s/internal/registry"
	"minik8s/internal/registry/authorization"
)

func nodeStrategy() *registry.Strategy {
	return &registry.Strategy{
		Default: onOne(defaults.Node),
		Validate: checkOne(func(node *corev1.Node) field.ErrorList {
			return append(validation.Node(node), validation.NodeStatus(node)...)
		}),
		BornWithStatus: true, // as in Kubernetes: a node is registered together with its state
		ValidateUpdate: checkStep(validation.NodeUpdate),
		ValidateStatus: checkStep(func(node, _ *corev1.Node) field.ErrorList { return validation.NodeStatus(node) }),
		CopyStatus:     onStep(func(dst, src *corev1.Node) { dst.Status = src.Status }),
		Fields: func(obj api.Object) fields.Set {
			return fields.Set{"spec.unschedulable": strconv.FormatBool(obj.(*corev1.Node).Spec.Unschedulable)}
		},
		FieldNames:  []string{"spec.unschedulable"},
		Dialect:     dialect.For(api.Nodes),
		Admit:       func(obj api.Object, others registry.Lister) error { return admitPodRange(obj, nil, others) },
		AdmitUpdate: admitPodRange,
		Exclusive: func(obj, old api.Object) string {
			if takesPodRange(obj, old) {
				return "podranges"
			}
			return ""
		},
		Author:    bindName,
		Restrict:  restrictNode,
		Essential: true,
	}
}

// bindName notes in a Node that the machine of a kubelet has its name.
func bindName(obj, old api.Object, by registry.User) {
	if _, ok := authorization.NodeOf(by); !ok {
		return
	}
	var before *corev1.Node
	if old != nil {
		before = old.(*corev1.Node)
	}
	authorization.BindName(by, obj.(*corev1.Node), before)
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

// takesPodRange reports whether a write sets a node's pod address ranges, which happens once.
func takesPodRange(obj, old api.Object) bool {
	return len(obj.(*corev1.Node).Spec.PodCIDRs) > 0 && (old == nil || len(old.(*corev1.Node).Spec.PodCIDRs) == 0)
}

// admitPodRange ensures that no two nodes use the same pod address range. A node requests a range. If it is taken, by
// the same machine under an earlier name or by a node with the same settings, the node gets the next free range of
// the same size. A node with one range for each IP family is refused if either is taken.
func admitPodRange(obj, old api.Object, others registry.Lister) error {
	if !takesPodRange(obj, old) {
		return nil
	}
	node := obj.(*corev1.Node)
	taken := map[netip.Prefix]string{}
	for _, other := range others.List(api.Nodes) {
		if other.GetName() == node.Name {
			continue
		}
		for _, cidr := range other.(*corev1.Node).Spec.PodCIDRs {
			if p, err := netip.ParsePrefix(cidr); err == nil {
				taken[p.Masked()] = other.GetName()
			}
		}
	}
	for i, cidr := range node.Spec.PodCIDRs {
		wish, err := netip.ParsePrefix(cidr)
		if err != nil {
			continue // validation reports it
		}
		free, in := wish.Masked(), ""
		for range len(taken) + 1 { // each step skips a taken range
			by, overlaps := overlapping(taken, free)
			if !overlaps {
				break
			}
			in, free = taken[by], after(by, free)
		}
		if _, still := overlapping(taken, free); still || in != "" && len(node.Spec.PodCIDRs) > 1 {
			return fmt.Errorf("spec.podCIDRs[%d]: %s overlaps the range of node %s, and no other can be given; delete nodes that are gone", i, cidr, in)
		}
		if in != "" {
			node.Spec.PodCIDR, node.Spec.PodCIDRs = free.String(), []string{free.String()}
		}
	}
	return nil
}

func overlapping(taken map[netip.Prefix]string, p netip.Prefix) (netip.Prefix, bool) {
	for t := range taken {
		if t.Overlaps(p) {
			return t, true
		}
	}
	return netip.Prefix{}, false
}

// after returns the first range of the size of p that lies after both.
func after(taken, p netip.Prefix) netip.Prefix {
	if taken.Bits() > p.Bits() {
		taken = p
	}
	return netip.PrefixFrom(nextRange(taken).Addr(), p.Bits())
}

// nextRange returns the next range of the same size; the first one follows the last.
func nextRange(p netip.Prefix) netip.Prefix {
	b := p.Addr().AsSlice()
	for i, carry := (p.Bits()-1)/8, 1<<((8-p.Bits()%8)%8); i >= 0 && carry > 0; i, carry = i-1, carry>>8 {
		carry += int(b[i])
		b[i] = byte(carry)
	}
	next, _ := netip.AddrFromSlice(b)
	return netip.PrefixFrom(next, p.Bits())
}
