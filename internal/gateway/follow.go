package gateway

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"minik8s/internal/gateway/backends"
	"minik8s/internal/gateway/routes"
)

// service notes a change of a Service. One that has an address to which routes lead may be what they mean.
func (g *Gateway) service(old, now *corev1.Service) {
	changed, moved := false, false
	g.seen.Lock()
	for _, s := range []*corev1.Service{old, now} {
		if s == nil {
			continue
		}
		if len(g.seen.addresses) > 0 && (old == nil || now == nil || !slices.Equal(old.Spec.ClusterIPs, now.Spec.ClusterIPs) || old.Spec.ClusterIP != now.Spec.ClusterIP) {
			for _, a := range clusterIPs(s) {
				moved = moved || g.seen.addresses[a]
			}
		}
		if n := (backends.Name{Namespace: s.Namespace, Name: s.Name}); g.seen.slices[n] != nil {
			g.seen.dirty[n], changed = true, true
		}
	}
	g.seen.routes = g.seen.routes || moved
	g.seen.Unlock()
	if changed || moved {
		g.poke()
	}
}

func clusterIPs(s *corev1.Service) (out []netip.Addr) {
	for _, text := range append([]string{s.Spec.ClusterIP}, s.Spec.ClusterIPs...) {
		if a, err := netip.ParseAddr(text); err == nil && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// slice notes a change of a slice of a Service to which routes lead. Its label says which Service it is of.
func (g *Gateway) slice(old, now *discoveryv1.EndpointSlice) {
	changed := false
	g.seen.Lock()
	for _, s := range []*discoveryv1.EndpointSlice{old, now} {
		if s == nil {
			continue
		}
		n := backends.Name{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}
		if names := g.seen.slices[n]; names != nil {
			names[s.Name] = true // one that is gone is found out when it is looked for
			g.seen.dirty[n], changed = true, true
		}
	}
	g.seen.Unlock()
	if changed {
		g.poke()
	}
}

// look tells the book what a Service is now.
func (g *Gateway) look(n backends.Name) {
	svc, _ := g.services.Get(n.Namespace, n.Name)
	var list []*discoveryv1.EndpointSlice
	g.seen.Lock()
	for name := range g.seen.slices[n] {
		if s, ok := g.slices.Get(n.Namespace, name); ok && s.Labels[discoveryv1.LabelServiceName] == n.Name {
			list = append(list, s)
		} else {
			delete(g.seen.slices[n], name)
		}
	}
	g.seen.Unlock()
	g.book.Set(n, svc, list)
}

// follow notes the addresses that routes lead to, and finds the Services that have them.
func (g *Gateway) follow(t *routes.Table) map[netip.Addr]backends.Name {
	addresses := map[netip.Addr]bool{}
	for _, r := range t.Routes() {
		if a := r.Backend.Address; a.IsValid() {
			addresses[a.Addr()] = true
		}
	}
	g.seen.Lock()
	g.seen.addresses = addresses // before the list: a Service that comes after it is heard of
	g.seen.Unlock()
	out := map[netip.Addr]backends.Name{}
	if len(addresses) == 0 {
		return out
	}
	for _, s := range g.services.List() {
		for _, a := range clusterIPs(s) {
			if addresses[a] {
				out[a] = backends.Name{Namespace: s.Namespace, Name: s.Name}
			}
		}
	}
	return out
}

// index finds the slices of Services that were not wanted before, and forgets those of others.
func (g *Gateway) index(ports []backends.Port, fresh []backends.Name) {
	wanted := map[backends.Name]bool{}
	for _, p := range ports {
		if p.Service.Name != "" {
			wanted[p.Service] = true
		}
	}
	g.seen.Lock()
	defer g.seen.Unlock()
	for n := range g.seen.slices {
		if !wanted[n] {
			delete(g.seen.slices, n)
			delete(g.seen.dirty, n)
		}
	}
	unknown := false
	for _, n := range fresh {
		if g.seen.slices[n] == nil {
			g.seen.slices[n], unknown = map[string]bool{}, true
		}
	}
	if !unknown {
		return
	}
	for _, s := range g.slices.List() {
		if names := g.seen.slices[backends.Name{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}]; names != nil {
			names[s.Name] = true
		}
	}
}
