package strategy

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/config"
	"minik8s/internal/api"
	"minik8s/internal/registry"
)

// balancers gives load balancers addresses of a pool. A Service's is in its status, which is written with it: so it is given
// once, as its other addresses are, and stays.
type balancers struct{ pool config.AddressPool }

// of is the address of the pool that a Service has; invalid: none.
func (b balancers) of(svc *corev1.Service) netip.Addr {
	for _, in := range svc.Status.LoadBalancer.Ingress {
		if a, err := netip.ParseAddr(in.IP); err == nil && b.pool.Contains(a) {
			return a
		}
	}
	return netip.Addr{}
}

// held names what a Service has of the pool, for Strategy.Holds.
func (b balancers) held(svc *corev1.Service) []string {
	if a := b.of(svc); a.IsValid() && api.Balanced(svc) {
		return []string{addressName(a.String())}
	}
	return nil
}

// needs reports whether a Service is to get an address, or another one than it has.
func (b balancers) needs(svc *corev1.Service) bool {
	if len(b.pool) == 0 || !api.Balanced(svc) {
		return false
	}
	has, asked := b.of(svc), svc.Spec.LoadBalancerIP //nolint:staticcheck // it is what people know
	return !has.IsValid() || asked != "" && asked != has.String()
}

// give gives a Service the address that it asks for, or one that is free. Where none is, it has none until there is one: the
// controller asks again. What it asked for before, and did not get, is not refused now.
func (b balancers) give(svc, old *corev1.Service, others registry.Lister) field.ErrorList {
	var addr netip.Addr
	asked := svc.Spec.LoadBalancerIP //nolint:staticcheck // as above
	if asked != "" {
		var err error
		if addr, err = netip.ParseAddr(asked); err == nil {
			err = b.chosen(svc, addr, others)
		}
		if err != nil && old != nil && api.Balanced(old) && old.Spec.LoadBalancerIP == asked { //nolint:staticcheck // as above
			return nil
		}
		if err != nil {
			return field.ErrorList{field.Invalid(field.NewPath("spec", "loadBalancerIP"), asked, err.Error())}
		}
	} else if n, ok := search(0, 0, b.pool.Size(), func(n int) bool { return b.taken(svc, b.pool.At(n), others) == "" }); ok {
		addr = b.pool.At(n)
	}
	svc.Status.LoadBalancer.Ingress = nil
	if addr.IsValid() {
		svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: addr.String(), IPMode: new(corev1.LoadBalancerIPModeVIP)}}
	}
	return nil
}

func (b balancers) chosen(svc *corev1.Service, addr netip.Addr, others registry.Lister) error {
	if !b.pool.Contains(addr) {
		return fmt.Errorf("it is not in --lb-pool, %s: choose one of these, or none, to get one that is free", b.pool)
	}
	if by := b.taken(svc, addr, others); by != "" {
		return fmt.Errorf("%s has it: choose another, or none, to get one that is free", by)
	}
	return nil
}

// taken says who has an address; empty: it is free, or the Service's own.
func (b balancers) taken(svc *corev1.Service, addr netip.Addr, others registry.Lister) string {
	if holder := holderOf(addr, others); holder != nil && !sameObject(holder, svc) {
		return titleOf(holder)
	}
	if node := nodeAt(addr, others); node != "" {
		return "node " + node
	}
	if svc.Spec.ClusterIP == addr.String() {
		return "the Service itself, as its cluster IP,"
	}
	return ""
}

// nodeAt is the name of the Node that says an address; empty: none does.
func nodeAt(addr netip.Addr, others registry.Lister) string {
	for _, obj := range others.List(api.Nodes) {
		for _, has := range obj.(*corev1.Node).Status.Addresses {
			if ip, err := netip.ParseAddr(has.Address); err == nil && ip == addr {
				return obj.GetName()
			}
		}
	}
	return ""
}
