package proxy

import (
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/nft"
	"minik8s/internal/proxy/plan"
	"minik8s/internal/proxy/report"
)

var protocolNames = map[byte]string{unix.IPPROTO_TCP: "TCP", unix.IPPROTO_UDP: "UDP", unix.IPPROTO_SCTP: "SCTP"}

// outsider is an address that is nobody's (RFC 5737), for calls from other machines.
var outsider = netip.MustParseAddr("203.0.113.254")

// Inspect says where connections to a Service are led: as the proxy wants it, and as the rules say that the kernel has at this
// moment. from is the address of a pod of this node whose way it is; invalid: that of any pod, of the host and of others.
// It changes nothing, and reads of the kernel no more than such packets meet.
func (p *Proxy) Inspect(namespace, name string, from netip.Addr) report.Service {
	out := report.Service{Node: p.cfg.Node.Name}
	of := types.NamespacedName{Namespace: namespace, Name: name}
	p.mu.Lock()
	e, r, synced := p.state.entries[of], p.state.renderer, p.keeper.Synced()
	var wanted nft.Table
	if e != nil {
		wanted = p.state.tableOf(of, e)
	}
	p.mu.Unlock()
	switch {
	case !synced:
		out.Why = "the proxy of this node has not written its rules yet"
		return out
	case e == nil:
		out.Why = "the proxy of this node leads nobody to it"
		return out
	}
	out.Known = true
	i := inspection{renderer: r, wanted: wanted, ruleset: p.cfg.Ruleset, from: from}
	for _, port := range e.plan.Ports {
		out.Calls = append(out.Calls, i.port(port)...)
	}
	return out
}

// tableOf is the table as if there were only one Service.
func (s *state) tableOf(name types.NamespacedName, e *entry) nft.Table {
	t := s.skeleton
	t.Sets, t.Chains = slices.Clone(t.Sets), slices.Clone(t.Chains)
	p := s.pieceOf(name, e)
	t.Chains, t.Sets = append(t.Chains, p.chains...), append(t.Sets, p.sets...)
	for i := range t.Sets {
		set := &t.Sets[i]
		set.Elements = slices.Clone(set.Elements)
		for _, el := range append(p.elements[:len(p.elements):len(p.elements)], p.shared...) {
			if el.Set == set.Name {
				set.Elements = append(set.Elements, el)
			}
		}
	}
	return t
}

// inspection is of one Service.
type inspection struct {
	renderer
	wanted  nft.Table
	ruleset Ruleset
	from    netip.Addr
}

func (i inspection) port(p plan.Port) (out []report.Call) {
	add := func(at netip.AddrPort, nodePort bool, callers ...string) {
		if i.from.IsValid() {
			callers = []string{report.FromPods}
		}
		for _, from := range callers {
			out = append(out, i.call(p, report.Call{Protocol: protocolNames[p.Protocol], At: at, NodePort: nodePort, From: from}))
		}
	}
	if p.Cluster.IsValid() {
		add(p.Cluster, false, report.FromPods, report.FromHost)
	}
	for _, at := range append(slices.Clone(p.External), p.Guarded...) {
		add(at, false, report.FromPods, report.FromOutside)
	}
	if p.NodePort != 0 && len(i.node.Addresses) > 0 {
		add(netip.AddrPortFrom(i.node.Addresses[0], p.NodePort), true, report.FromPods, report.FromOutside)
	}
	return out
}

func (i inspection) call(p plan.Port, c report.Call) report.Call {
	packet, hook := i.packet(p, c), nft.Prerouting
	if c.From == report.FromHost {
		hook = nft.Output
	}
	local := func(a netip.Addr) bool { return a.IsLoopback() || slices.Contains(i.node.Addresses, a) }
	kernel := i.ruleset.Walker(i.wanted, local)
	var err error
	if c.Kernel, err = fate(kernel, hook, packet); err != nil {
		c.Error = err.Error()
	}
	c.Way = kernel.Way
	if p.Affinity > 0 && i.from.IsValid() {
		if to, _, err := kernel.Send(hook, packet); err == nil && kernel.Known {
			c.Remembered = to.To
		}
	}
	c.Wanted, _ = fate(nft.NewWalker(i.wanted, local), hook, packet) //nolint:errcheck // tests show that it is no table with mistakes
	return c
}

// packet is the first one of a connection.
func (i inspection) packet(p plan.Port, c report.Call) nft.Packet {
	out := nft.Packet{Protocol: p.Protocol, To: c.At}
	source := outsider
	switch {
	case i.from.IsValid():
		source, out.In = i.from, i.links+"0"
	case c.From == report.FromPods:
		out.In = i.links + "0"
		if i.pods.IsValid() {
			source = i.pods.Addr().Next()
		}
	case c.From == report.FromHost:
		if len(i.node.Addresses) > 0 {
			source = i.node.Addresses[0]
		}
	case slices.Contains(p.Guarded, c.At) && len(p.Sources) > 0: // of those that may call it
		source = p.Sources[0].Addr()
	}
	out.From = netip.AddrPortFrom(source, 40000)
	return out
}

// otherwise is what becomes of packets that are led nowhere, in words.
var otherwise = map[nft.Outcome]string{nft.Dropped: "dropped", nft.Reset: "refused", nft.Unreachable: "refused", nft.Passes: "untouched"}

func fate(w *nft.Walker, hook nft.Hook, p nft.Packet) (report.Outcome, error) {
	to, all, err := w.SendAll(hook, p)
	out := report.Outcome{Endpoints: to}
	for _, o := range all {
		if text, ok := otherwise[o]; ok && !slices.Contains(out.Otherwise, text) {
			out.Otherwise = append(out.Otherwise, text)
		}
	}
	return out, err
}
