package strategy

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"minik8s/config"
	"minik8s/internal/api"
	"minik8s/internal/registry"
)

// podRanges gives each Node its range of pod addresses. A Node that asks for one gets that one or is refused; any other
// gets the first that is free.
type podRanges struct {
	// cluster has all ranges; invalid: Nodes have only what they ask for.
	cluster netip.Prefix
}

// takenRange is a range that an object has.
type takenRange struct {
	netip.Prefix
	by api.Object
}

// takes reports whether a write gives a Node its range, which happens once.
func (p podRanges) takes(obj, old api.Object) bool {
	if old != nil && len(old.(*corev1.Node).Spec.PodCIDRs) > 0 {
		return false
	}
	return p.cluster.IsValid() || len(obj.(*corev1.Node).Spec.PodCIDRs) > 0
}

func (p podRanges) exclusive(obj, old api.Object) []string {
	if p.takes(obj, old) {
		return []string{addressGroup}
	}
	return nil
}

func (p podRanges) admit(obj, old api.Object, others registry.Lister) error {
	if !p.takes(obj, old) {
		return nil
	}
	node, nodes := obj.(*corev1.Node), others.List(api.Nodes)
	taken := make([]takenRange, 0, len(nodes))
	for _, other := range nodes {
		if other.GetName() == node.Name {
			continue
		}
		for _, cidr := range other.(*corev1.Node).Spec.PodCIDRs {
			if r, err := netip.ParsePrefix(cidr); err == nil {
				taken = append(taken, takenRange{r.Masked(), other})
			}
		}
	}
	// A Service may have had its address before the cluster had this range, or a Node asks for one outside of it.
	wanted := p.wanted(node)
	for _, kind := range addressed {
		for _, obj := range others.List(kind) {
			if a := api.ServiceAddress(obj); a.IsValid() && wanted(a) {
				taken = append(taken, takenRange{netip.PrefixFrom(a, a.BitLen()), obj})
			}
		}
	}
	for _, obj := range others.List(api.ServiceCIDRs) {
		for _, r := range api.ServiceRanges(obj.(*networkingv1.ServiceCIDR)) {
			taken = append(taken, takenRange{r.Masked(), obj})
		}
	}
	if len(node.Spec.PodCIDRs) > 0 {
		return p.asked(node, taken)
	}
	free, ok := p.free(taken)
	if !ok && old != nil {
		return nil // from before Nodes got their ranges here; it is changed for another reason
	}
	if !ok {
		return fmt.Errorf("spec.podCIDR: every /%d of --cluster-cidr %s has a node: delete Nodes that are gone, or give this one a smaller range of its own", config.NodeBits, p.cluster)
	}
	node.Spec.PodCIDR, node.Spec.PodCIDRs = free.String(), []string{free.String()}
	return nil
}

// wanted reports whether an address is where the Node's range may come to lie.
func (p podRanges) wanted(node *corev1.Node) func(netip.Addr) bool {
	ranges := []netip.Prefix{}
	for _, cidr := range node.Spec.PodCIDRs {
		if r, err := netip.ParsePrefix(cidr); err == nil {
			ranges = append(ranges, r)
		}
	}
	if len(node.Spec.PodCIDRs) == 0 {
		ranges = append(ranges, p.cluster)
	}
	return func(a netip.Addr) bool {
		return slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return r.Contains(a) })
	}
}

// asked refuses the ranges that a Node asks for if they are others', or not the cluster's.
func (p podRanges) asked(node *corev1.Node, taken []takenRange) error {
	if p.cluster.IsValid() && !slices.ContainsFunc(node.Spec.PodCIDRs, func(cidr string) bool {
		r, err := netip.ParsePrefix(cidr)
		return err != nil || r.Addr().Is4() && r.Bits() <= 29
	}) {
		return fmt.Errorf("spec.podCIDRs: expected an IPv4 range of /29 or more addresses among %v: pods have IPv4 addresses", node.Spec.PodCIDRs)
	}
	for i, cidr := range node.Spec.PodCIDRs {
		want, err := netip.ParsePrefix(cidr)
		if err != nil {
			continue // validation reports it
		}
		if j := slices.IndexFunc(taken, func(t takenRange) bool { return t.Overlaps(want.Masked()) }); j >= 0 {
			return fmt.Errorf("spec.podCIDRs[%d]: %s overlaps %s of %s: ask for another range, or for none, to get one that is free", i, cidr, taken[j], titleOf(taken[j].by))
		}
		if p.cluster.IsValid() && want.Addr().Is4() && (want.Bits() < p.cluster.Bits() || !p.cluster.Contains(want.Addr())) {
			return fmt.Errorf("spec.podCIDRs[%d]: %s is not within the cluster's range %s: ask for another one, or start the masters with another --cluster-cidr", i, cidr, p.cluster)
		}
	}
	return nil
}

// free returns the first free range of a node's size.
func (p podRanges) free(taken []takenRange) (netip.Prefix, bool) {
	bits := max(config.NodeBits, p.cluster.Bits())
	used := make([]bool, 1<<(bits-p.cluster.Bits())) // of each range in turn
	start := number(p.cluster.Masked().Addr())
	for _, t := range taken {
		switch {
		case !t.Overlaps(p.cluster):
		case t.Bits() <= p.cluster.Bits():
			return netip.Prefix{}, false
		default:
			first := (number(t.Addr()) - start) >> (32 - bits)
			for i := range 1 << max(bits-t.Bits(), 0) {
				used[int(first)+i] = true
			}
		}
	}
	i := slices.Index(used, false)
	if i < 0 {
		return netip.Prefix{}, false
	}
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], start+uint32(i)<<(32-bits))
	return netip.PrefixFrom(netip.AddrFrom4(a), bits), true
}

// number is an IPv4 address as a number.
func number(a netip.Addr) uint32 {
	b := a.As4()
	return binary.BigEndian.Uint32(b[:])
}
