// Package entry says at which addresses of nodes traffic enters the cluster. It is pure.
//
// The controllers of load balancers and of Ingresses use it, so that both announce the same nodes.
package entry

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Of are the addresses at which a node leads traffic to pods; none if n is nil, is not ready, runs no pods, or is left out
// of load balancers by its label.
func Of(n *corev1.Node) []netip.Addr {
	if n == nil || n.DeletionTimestamp != nil || n.Status.Allocatable.Pods().IsZero() {
		return nil
	}
	if _, ok := n.Labels[corev1.LabelNodeExcludeBalancers]; ok {
		return nil
	}
	ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	if !ready {
		return nil
	}
	var out []netip.Addr
	for _, a := range n.Status.Addresses {
		if ip, err := netip.ParseAddr(a.Address); err == nil && a.Type == corev1.NodeInternalIP && ip.Is4() {
			out = append(out, ip)
		}
	}
	return out
}

// All are the addresses of all nodes, in order, each once.
func All(nodes []*corev1.Node) []netip.Addr {
	var out []netip.Addr
	for _, n := range nodes {
		out = append(out, Of(n)...)
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}
