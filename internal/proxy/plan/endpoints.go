package plan

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// endpoint is one of a Service's port, as its slice says.
type endpoint struct {
	at      netip.AddrPort
	ready   bool
	serving bool // though it ends
	local   bool
	hints   *discoveryv1.EndpointHints
}

// endpoints are those of a port that get connections, and those of them that are on this node whatever the hints say: if none is
// ready, those that are about to end and still serve. isReady
// reports whether those in local are ready. Both lists are sorted.
func endpoints(list []*discoveryv1.EndpointSlice, p corev1.ServicePort, node Node) (all, local []netip.AddrPort, isReady bool) {
	known := map[netip.AddrPort]endpoint{}
	for _, s := range list {
		if s.AddressType != discoveryv1.AddressTypeIPv4 || s.DeletionTimestamp != nil {
			continue
		}
		port, ok := portOf(s, p)
		if !ok {
			continue
		}
		for _, e := range s.Endpoints {
			for _, a := range e.Addresses[:min(1, len(e.Addresses))] { // they are all the same endpoint
				addr, err := netip.ParseAddr(a)
				if err != nil || !addr.Is4() {
					continue
				}
				n := endpointOf(e, netip.AddrPortFrom(addr, port), node)
				// While slices are rewritten an endpoint may be in two of them.
				if old, ok := known[n.at]; !ok || n.ready && !old.ready || n.serving && !old.ready && !old.serving {
					known[n.at] = n
				}
			}
		}
	}
	var ready, ending []endpoint
	for _, e := range known {
		switch {
		case e.ready:
			ready = append(ready, e)
		case e.serving:
			ending = append(ending, e)
		}
	}
	all = addrs(hinted(ready, node), false)
	if len(all) == 0 {
		all = addrs(ending, false)
	}
	local = addrs(ready, true)
	if isReady = len(local) > 0; !isReady {
		local = addrs(ending, true)
	}
	return all, local, isReady
}

// portOf is the number under which a slice has a Service's port.
func portOf(s *discoveryv1.EndpointSlice, p corev1.ServicePort) (uint16, bool) {
	for _, q := range s.Ports {
		name, protocol := "", corev1.ProtocolTCP
		if q.Name != nil {
			name = *q.Name
		}
		if q.Protocol != nil {
			protocol = *q.Protocol
		}
		if name == p.Name && protocols[protocol] == protocols[p.Protocol] && q.Port != nil && *q.Port > 0 && *q.Port < 1<<16 {
			return uint16(*q.Port), true
		}
	}
	return 0, false
}

func endpointOf(e discoveryv1.Endpoint, at netip.AddrPort, node Node) endpoint {
	is := func(b *bool, otherwise bool) bool {
		if b == nil {
			return otherwise
		}
		return *b
	}
	c := e.Conditions
	ready := is(c.Ready, true)
	return endpoint{at: at, ready: ready, serving: is(c.Serving, ready) && is(c.Terminating, false),
		local: e.NodeName != nil && *e.NodeName == node.Name, hints: e.Hints}
}

// hinted are the endpoints that hints leave to this node: if all have hints for nodes, and one is for this node, those; or
// else the same with zones; or else all.
func hinted(list []endpoint, node Node) []endpoint {
	pick := func(value string, of func(*discoveryv1.EndpointHints) []string) (out []endpoint) {
		for _, e := range list {
			if value == "" || e.hints == nil || len(of(e.hints)) == 0 {
				return nil
			}
			if slices.Contains(of(e.hints), value) {
				out = append(out, e)
			}
		}
		return out
	}
	for _, out := range [][]endpoint{
		pick(node.Name, func(h *discoveryv1.EndpointHints) (names []string) {
			for _, n := range h.ForNodes {
				names = append(names, n.Name)
			}
			return names
		}),
		pick(node.Zone, func(h *discoveryv1.EndpointHints) (names []string) {
			for _, z := range h.ForZones {
				names = append(names, z.Name)
			}
			return names
		}),
	} {
		if len(out) > 0 {
			return out
		}
	}
	return list
}

func addrs(list []endpoint, local bool) (out []netip.AddrPort) {
	for _, e := range list {
		if e.local || !local {
			out = append(out, e.at)
		}
	}
	slices.SortFunc(out, netip.AddrPort.Compare)
	return out
}
