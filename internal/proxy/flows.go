package proxy

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"minik8s/internal/conntrack"
)

// A UDP flow goes on to the endpoint with which it began for as long as somebody sends, whatever the rules say by then; one
// that began before its Service had endpoints is not translated at all. TCP notices by itself, and is left to end.

// stale reports whether a flow is to a UDP port of a Service, and with none of its endpoints. Of ports that are gone wanted
// has no endpoints.
func stale(f conntrack.Flow, wanted map[flow][]netip.AddrPort, hosts []netip.Addr) bool {
	list, ok := wanted[flow{f.To}]
	if !ok && slices.Contains(hosts, f.To.Addr()) {
		list, ok = wanted[flow{netip.AddrPortFrom(netip.Addr{}, f.To.Port())}]
	}
	return ok && !slices.Contains(list, f.Server)
}

// orphaned reports whether a flow was led to another address than it was sent to, and that is neither this host's nor anything
// that a Service has now: so it was a Service's that went while nobody looked.
func orphaned(f conntrack.Flow, wanted map[flow][]netip.AddrPort, hosts []netip.Addr) bool {
	_, known := wanted[flow{f.To}]
	return !known && f.Server != f.To && !slices.Contains(hosts, f.To.Addr())
}

// ownAddresses are those that this host has, also the ones that its Node does not say: node ports are reached by all.
func ownAddresses() (out []netip.Addr) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, p.Addr().Unmap())
		}
	}
	return out
}

// flowsOf adds what is called by UDP and leads to a Service to out, with the endpoints.
func flowsOf(e *entry, out map[flow][]netip.AddrPort, mine func(protocol byte, at netip.AddrPort) bool) {
	if e == nil {
		return
	}
	for _, p := range e.plan.Ports {
		if p.Protocol != unix.IPPROTO_UDP {
			continue
		}
		all := append(slices.Clone(p.Endpoints), p.Local...)
		for _, list := range [][]netip.AddrPort{{p.Cluster}, p.External, p.Guarded} {
			for _, at := range list {
				if at.IsValid() && mine(p.Protocol, at) {
					out[flow{at}] = all
				}
			}
		}
		if p.NodePort != 0 {
			out[flow{netip.AddrPortFrom(netip.Addr{}, p.NodePort)}] = all
		}
	}
}

// broken are the flows that a change of a Service may leave stale: an endpoint went, the first one came, or the address did.
func broken(old, now *entry) (out []flow) {
	any := func(byte, netip.AddrPort) bool { return true }
	was, is := map[flow][]netip.AddrPort{}, map[flow][]netip.AddrPort{}
	flowsOf(old, was, any)
	flowsOf(now, is, any)
	for f, list := range is {
		before, ok := was[f]
		if !ok || len(before) == 0 && len(list) > 0 || slices.ContainsFunc(before, func(e netip.AddrPort) bool { return !slices.Contains(list, e) }) {
			out = append(out, f)
		}
	}
	for f := range was {
		if _, ok := is[f]; !ok {
			out = append(out, f)
		}
	}
	return out
}

// cutFlows ends stale flows whenever it is woken, until ctx ends: in the background, because the kernel walks through all of
// its table, and once for all changes that come meanwhile.
func (p *Proxy) cutFlows(ctx context.Context) {
	for {
		select {
		case <-p.cut:
		case <-ctx.Done():
			return
		}
		p.mu.Lock()
		wanted, hosts := p.state.udp(), p.state.node.Addresses
		for f := range p.broken { // also if it leads nowhere any more
			if _, ok := wanted[f]; !ok {
				wanted[f] = nil
			}
		}
		clear(p.broken)
		first := !p.swept
		p.swept = true
		p.mu.Unlock()
		if len(wanted) == 0 && !first {
			continue
		}
		hosts = append(slices.Clone(hosts), ownAddresses()...)
		n, err := conntrack.End(unix.IPPROTO_UDP, func(f conntrack.Flow) bool {
			return stale(f, wanted, hosts) || first && orphaned(f, wanted, hosts)
		})
		if err != nil {
			p.cfg.Log.Warn("UDP flows to endpoints that are gone could not be ended", "error", err)
		}
		if n > 0 {
			p.cfg.Log.Debug("UDP flows to endpoints that are gone are ended", slog.Int("flows", n))
		}
	}
}
