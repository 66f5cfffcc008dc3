package roles

import (
	"context"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/dns"
	"minik8s/internal/informer"
)

// What the network holds addresses for.
const (
	forDNS     = "d"
	forGateway = "g"
)

// runDNS answers the DNS questions of this machine's pods.
func (d *Daemon) runDNS(ctx context.Context, ready func()) error {
	opts := informer.Options{Views: d.nodeViews(), Log: d.log}
	s := dns.New(dns.Config{Domain: d.cfg.ClusterDomain, Hold: d.holdDNS, Log: d.log},
		informer.New[*corev1.Service](d.asNode(), api.Services, opts), informer.New[*discoveryv1.EndpointSlice](d.asNode(), api.EndpointSlices, opts),
		informer.New[*minik8s.DNS](d.asNode(), api.DNSes, opts))
	return s.Run(ctx, ready)
}

// holdDNS has this machine have the address of the DNS; the zero Addr: none.
func (d *Daemon) holdDNS(at netip.Addr) error {
	var addrs []netip.Addr
	if at.IsValid() {
		addrs = append(addrs, at)
	}
	return d.network.Serve(forDNS, addrs)
}
