package roles

import (
	"context"
	"net/netip"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/gateway"
	"minik8s/internal/informer"
)

// runGateway answers HTTP on this machine for DNS objects, at their own addresses, and for Ingresses, at the machine's.
func (d *Daemon) runGateway(ctx context.Context, ready func()) error {
	opts := informer.Options{Views: d.nodeViews(), Log: d.log}
	names := informer.New[*minik8s.DNS](d.asNode(), api.DNSes, opts)
	changed := names.Signal(addressChanged)
	g := gateway.New(gateway.Config{Addresses: []netip.Addr{d.cfg.NodeIP, netip.AddrFrom4([4]byte{127, 0, 0, 1})}, Secret: d.secretOf, Log: d.log},
		informer.New[*corev1.Service](d.asNode(), api.Services, opts), informer.New[*discoveryv1.EndpointSlice](d.asNode(), api.EndpointSlices, opts),
		gateway.Names(names), gateway.Ingresses(informer.New[*networkingv1.Ingress](d.asNode(), api.Ingresses, opts), informer.New[*networkingv1.IngressClass](d.asNode(), api.IngressClasses, opts)))
	ctx, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	beside.Go(func() {
		for {
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
			if err := d.network.Serve(forGateway, addressesOf(names.List())); err != nil {
				d.log.Error("this machine does not have the addresses of DNS objects", "error", err)
			}
		}
	})
	return g.Run(ctx, ready)
}

// addressChanged reports whether a change of a DNS object is one of the addresses that the gateways have.
func addressChanged(old, now *minik8s.DNS) bool {
	return old == nil || now == nil || old.Spec.ServiceAddress != now.Spec.ServiceAddress
}

// addressesOf are the addresses of DNS objects, in order.
func addressesOf(list []*minik8s.DNS) (out []netip.Addr) {
	for _, obj := range list {
		if a, err := netip.ParseAddr(obj.Spec.ServiceAddress); err == nil && a.Is4() && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare) // a list has no order
	return out
}

// secretOf reads the Secret of a certificate.
func (d *Daemon) secretOf(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return client.Get[*corev1.Secret](ctx, d.asNode(), client.Key{Kind: api.Secrets, Namespace: namespace, Name: name})
}
