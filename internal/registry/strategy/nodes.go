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
)

func nodeStrategy() *registry.Strategy {
	return &registry.Strategy{
		Default: onOne(defaults.Node),
		Validate: checkOne(func(node *corev1.Node) field.ErrorList {
			return append(validation.Node(node), validation.NodeStatus(node)...)
		}),
		BornWithStatus: true, // as in Kubernetes: who registers a node knows how it stands
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
		Essential: true,
	}
}

// takesPodRange says whether a write gives a node its pods' range of addresses, which happens once.
func takesPodRange(obj, old api.Object) bool {
	return len(obj.(*corev1.Node).Spec.PodCIDRs) > 0 && (old == nil || len(old.(*corev1.Node).Spec.PodCIDRs) == 0)
}

// admitPodRange sees to it that no two nodes give pods addresses of one range. A node wishes for a range; if that is
// taken, by the same machine under an earlier name or by one with the same settings, it gets the next free one of the same
// size. With a range of each IP family both have to be free.
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
			continue // validation has said so
		}
		free, in := wish.Masked(), ""
		for range len(taken) + 1 { // each step passes one that is taken
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

// after is the first range of the size of p behind both.
func after(taken, p netip.Prefix) netip.Prefix {
	if taken.Bits() > p.Bits() {
		taken = p
	}
	return netip.PrefixFrom(nextRange(taken).Addr(), p.Bits())
}

// nextRange is the range of the same size that follows; after the last comes the first.
func nextRange(p netip.Prefix) netip.Prefix {
	b := p.Addr().AsSlice()
	for i, carry := (p.Bits()-1)/8, 1<<((8-p.Bits()%8)%8); i >= 0 && carry > 0; i, carry = i-1, carry>>8 {
		carry += int(b[i])
		b[i] = byte(carry)
	}
	next, _ := netip.AddrFromSlice(b)
	return netip.PrefixFrom(next, p.Bits())
}
