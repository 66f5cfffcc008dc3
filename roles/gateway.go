package roles

import (
	"context"
	"net/netip"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/gateway"
	"minik8s/internal/informer"
	"minik8s/internal/informer/reflector"
)

// runGateway answers HTTP on this machine for DNS objects, at their own addresses, and for Ingresses, at the machine's.
func (d *Daemon) runGateway(ctx context.Context, ready func()) error {
	opts := informer.Options{Views: d.nodeViews(), Log: d.log}
	names := informer.New[*minik8s.DNS](d.asNode(), api.DNSes, opts)
	changed := names.Signal(addressChanged)
	g := gateway.New(gateway.Config{Addresses: []netip.Addr{d.cfg.NodeIP, netip.AddrFrom4([4]byte{127, 0, 0, 1})}, Follow: d.followSecret, Log: d.log},
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

// followSecret tells the Secret of a certificate, and each change of it, until ctx ends.
func (d *Daemon) followSecret(ctx context.Context, namespace, name string, told func(*corev1.Secret, error)) {
	tell := func(obj api.Object) {
		secret, _ := obj.(*corev1.Secret)
		told(secret, nil)
	}
	r := reflector.Reflector{Client: d.asNode(), Kind: api.Secrets, Namespace: namespace, Fields: fields.OneTermEqualSelector("metadata.name", name), Log: d.log,
		Replace: func(items []api.Object, _ string) {
			if len(items) == 0 {
				tell(nil)
				return
			}
			tell(items[0])
		},
		Apply: func(e client.Event) {
			switch e.Type {
			case client.Bookmark:
			case client.Deleted:
				tell(nil)
			default:
				tell(e.Object)
			}
		},
		Failed: func(err error) { told(nil, err) }}
	r.Run(ctx)
}
