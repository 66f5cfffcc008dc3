package frontends

import (
	"net/netip"
	"strconv"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/gateway/routes"
)

// FromDNS is what a DNS object wants: its host with its paths at its own address, which are taken off. Without an address
// there is nothing yet.
func FromDNS(dns *minik8s.DNS) (out routes.Set) {
	at, err := netip.ParseAddr(dns.Spec.ServiceAddress)
	if err != nil {
		return out
	}
	owner := routes.Owner{Kind: "DNS", Namespace: dns.Namespace, Name: dns.Name, Created: dns.CreationTimestamp.Time}
	for i := range dns.Spec.Paths {
		p := &dns.Spec.Paths[i]
		target, err := p.Target()
		if err != nil {
			continue
		}
		to := routes.Backend{Namespace: dns.Namespace, Service: target.Service, Port: strconv.Itoa(int(target.Port))}
		if target.Service == "" {
			to = routes.Backend{Address: netip.AddrPortFrom(target.Addr.Unmap(), uint16(target.Port))}
		}
		out.Routes = append(out.Routes, routes.Route{Address: at.Unmap(), Host: dns.Spec.Host, Path: p.CleanPath(), Strip: true, Backend: to, Owner: owner})
	}
	return out
}
