package loadbalancer

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/controller/entry"
)

// nodesAddresses are those that a Service has where there is no pool, in order.
func nodesAddresses(nodes []*corev1.Node) []corev1.LoadBalancerIngress {
	var out []corev1.LoadBalancerIngress
	for _, a := range entry.All(nodes) {
		out = append(out, corev1.LoadBalancerIngress{IP: a.String(), IPMode: new(corev1.LoadBalancerIPModeVIP)})
	}
	return out
}

// announcer is the name of the node that is to answer for an address of the pool; empty: there is none that could. serves says which
// nodes have ready endpoints, of a Service whose traffic from outside stays on the node where it comes in; nil for others.
//
// The node that does so now goes on while it can, so that nothing moves without need. Else it is one that all who look at the same
// Nodes would choose, and different addresses have different ones. A node on the address' own network comes first: a
// neighbour can be asked only there. Of nodes with endpoints and without, those with.
func announcer(addr netip.Addr, now string, nodes []*corev1.Node, serves map[string]bool) string {
	var able []*corev1.Node
	for _, n := range nodes {
		if len(entry.Of(n)) > 0 {
			able = append(able, n)
		}
	}
	able = preferred(able, func(n *corev1.Node) bool { return onNetwork(n, addr) })
	if serves != nil {
		able = preferred(able, func(n *corev1.Node) bool { return serves[n.Name] })
	}
	if len(able) == 0 {
		return ""
	}
	if slices.ContainsFunc(able, func(n *corev1.Node) bool { return n.Name == now }) {
		return now
	}
	return slices.MaxFunc(able, func(a, b *corev1.Node) int {
		return cmp.Or(cmp.Compare(weight(addr, a.Name), weight(addr, b.Name)), cmp.Compare(a.Name, b.Name))
	}).Name
}

// preferred are those for which good holds, or all if there are none.
func preferred(list []*corev1.Node, good func(*corev1.Node) bool) []*corev1.Node {
	var out []*corev1.Node
	for _, n := range list {
		if good(n) {
			out = append(out, n)
		}
	}
	if len(out) == 0 {
		return list
	}
	return out
}

func onNetwork(n *corev1.Node, addr netip.Addr) bool {
	for network := range strings.SplitSeq(n.Annotations[api.NetworksAnnotation], ",") {
		if p, err := netip.ParsePrefix(network); err == nil && p.Contains(addr) {
			return true
		}
	}
	return false
}

// weight is how much an address is a node's: the greatest has it (rendezvous hashing).
func weight(addr netip.Addr, node string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %s", addr, node) //nolint:errcheck // it cannot fail
	x := h.Sum64()                      // whose high bits are alike for names that are: mix them
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}

// rival is a load balancer that has a port of svc at the nodes' addresses before it, and that port; nil: none. The older one has it, as
// the nodes' rules do.
func rival(svc *corev1.Service, others []*corev1.Service) (*corev1.Service, corev1.ServicePort) {
	for _, o := range others {
		if !api.Balanced(o) || o.UID == svc.UID || !older(o, svc) {
			continue
		}
		for _, p := range svc.Spec.Ports {
			if slices.ContainsFunc(o.Spec.Ports, func(q corev1.ServicePort) bool { return q.Port == p.Port && q.Protocol == p.Protocol }) {
				return o, p
			}
		}
	}
	return nil, corev1.ServicePort{}
}

func older(a, b *corev1.Service) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)) < 0
}

// touches reports whether two Services have a port in common.
func touches(a, b *corev1.Service) bool {
	return slices.ContainsFunc(a.Spec.Ports, func(p corev1.ServicePort) bool {
		return slices.ContainsFunc(b.Spec.Ports, func(q corev1.ServicePort) bool { return q.Port == p.Port && q.Protocol == p.Protocol })
	})
}
