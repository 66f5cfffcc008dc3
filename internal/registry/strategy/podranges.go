package strategy

import (
	"fmt"
	"maps"
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
	node, taken := obj.(*corev1.Node), map[netip.Prefix]string{}
	for _, other := range others.List(api.Nodes) {
		if other.GetName() == node.Name {
			continue
		}
		for _, cidr := range other.(*corev1.Node).Spec.PodCIDRs {
			if r, err := netip.ParsePrefix(cidr); err == nil {
				taken[r.Masked()] = "node " + other.GetName()
			}
		}
	}
	// A Service may have had its address before the cluster had this range, or a Node asks for one outside of it.
	wanted := p.wanted(node)
	for _, kind := range addressed {
		for _, obj := range others.List(kind) {
			if a := api.ServiceAddress(obj); a.IsValid() && wanted(a) {
				taken[netip.PrefixFrom(a, a.BitLen())] = titleOf(obj)
			}
		}
	}
	for _, obj := range others.List(api.ServiceCIDRs) {
		for _, r := range api.ServiceRanges(obj.(*networkingv1.ServiceCIDR)) {
			taken[r.Masked()] = titleOf(obj)
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
func (p podRanges) asked(node *corev1.Node, taken map[netip.Prefix]string) error {
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
		if by, overlaps := overlapping(taken, want.Masked()); overlaps {
			return fmt.Errorf("spec.podCIDRs[%d]: %s overlaps %s of %s: ask for another range, or for none, to get one that is free", i, cidr, by, taken[by])
		}
		if p.cluster.IsValid() && want.Addr().Is4() && (want.Bits() < p.cluster.Bits() || !p.cluster.Contains(want.Addr())) {
			return fmt.Errorf("spec.podCIDRs[%d]: %s is not within the cluster's range %s: ask for another one, or start the masters with another --cluster-cidr", i, cidr, p.cluster)
		}
	}
	return nil
}

// free returns the first free range of a node's size. It goes through what is taken once, in order: the candidate lies after
// all that has been passed.
func (p podRanges) free(taken map[netip.Prefix]string) (netip.Prefix, bool) {
	candidate := netip.PrefixFrom(p.cluster.Masked().Addr(), max(config.NodeBits, p.cluster.Bits()))
	for _, t := range slices.SortedFunc(maps.Keys(taken), netip.Prefix.Compare) {
		if t.Overlaps(candidate) {
			candidate = after(t, candidate)
		} else if candidate.Addr().Less(t.Addr()) {
			break
		}
	}
	return candidate, p.cluster.Contains(candidate.Addr())
}

func overlapping(taken map[netip.Prefix]string, p netip.Prefix) (netip.Prefix, bool) {
	for t := range taken {
		if t.Overlaps(p) {
			return t, true
		}
	}
	return netip.Prefix{}, false
}

// after returns the first range of the size of p that lies after both; invalid if that is beyond the last address.
func after(taken, p netip.Prefix) netip.Prefix {
	bits := min(taken.Bits(), p.Bits())
	a := netip.PrefixFrom(taken.Addr(), bits).Masked().Addr().As4()
	n := uint64(a[0])<<24 | uint64(a[1])<<16 | uint64(a[2])<<8 | uint64(a[3])
	if n += 1 << (32 - bits); n >= 1<<32 {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}), p.Bits())
}
