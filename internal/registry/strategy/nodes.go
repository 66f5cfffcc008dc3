package strategy

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

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
		Admit:       admitNode,
		AdmitUpdate: admitNode,
		Claims:      claimsOfOne(claimsOfNode),
		Essential:   true,
	}
}

// rangesTried is how many ranges of pod addresses are looked at for a free one: those of a /16, where each node
// has a /24.
const rangesTried = 256

// admitNode gives a node that wishes for a range of pod addresses, as each does once, another one if that is taken: a machine that
// comes again under another name, or a second one with the same settings. It is the next free one of the same size.
func admitNode(obj api.Object, beside registry.Beside) error {
	node := obj.(*corev1.Node)
	if len(node.Spec.PodCIDRs) != 1 {
		return nil
	}
	wish, err := netip.ParsePrefix(node.Spec.PodCIDR)
	if err != nil {
		return nil //nolint:nilerr // validation has said so
	}
	var taken []netip.Prefix
	for _, other := range beside.All(api.Nodes) {
		if other.GetName() == node.Name {
			continue
		}
		for _, cidr := range other.(*corev1.Node).Spec.PodCIDRs {
			if p, err := netip.ParsePrefix(cidr); err == nil {
				taken = append(taken, p)
			}
		}
	}
	free := wish.Masked()
	for range rangesTried {
		if !slices.ContainsFunc(taken, free.Overlaps) {
			if free != wish.Masked() {
				node.Spec.PodCIDR, node.Spec.PodCIDRs = free.String(), []string{free.String()}
			}
			return nil
		}
		free = nextRange(free)
	}
	return fmt.Errorf("no range of pod addresses is free from %s on: delete nodes that are gone, or give this one another with --pod-cidr", wish)
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

// claimsOfNode: no two nodes give pods addresses of one range.
func claimsOfNode(node *corev1.Node) (claims []registry.Claim) {
	for _, cidr := range node.Spec.PodCIDRs {
		claims = append(claims, registry.Claim{Name: "podcidrs/" + strings.ReplaceAll(cidr, "/", "-"), Field: "spec.podCIDRs", Value: cidr})
	}
	return claims
}
