package proxy

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"minik8s/internal/nft"
	"minik8s/internal/proxy/plan"
)

// Tables is the prefix of the names of all daemons' tables.
const Tables = "minik8s-services-"

// guests is the prefix of the names of what another package keeps in the table.
const guests = "policy-"

// The sets and maps of the table.
const (
	services  = "services"   // (address, protocol, port) to chain
	nodePorts = "node-ports" // (protocol, port) to chain

	endpoints          = "endpoints"            // (address, protocol, port, turn) to (address, port)
	localEndpoints     = "local-endpoints"      // the same, of this node's alone
	portEndpoints      = "port-endpoints"       // (protocol, port, turn) to (address, port)
	portLocalEndpoints = "port-local-endpoints" // the same, of this node's alone

	clusterIPs = "cluster-ips"
	hairpins   = "hairpins" // (address, address) of pods of this node that may call themselves
	remote     = "remote"   // addresses of endpoints that are not on this node
)

// stickySize is how many clients stay with one endpoint; further ones take turns.
const stickySize = 1 << 16

var loopback = netip.MustParsePrefix("127.0.0.0/8")

// skeleton is the table without any Service. links is the prefix of the names of pods' links. TestRules shows it in the
// nft tool's syntax; README.md says why each rule is there.
func skeleton(name, links string) nft.Table {
	called, byPort := []nft.Type{nft.Address, nft.Protocol, nft.Port}, []nft.Type{nft.Protocol, nft.Port}
	turn := func(key []nft.Type) []nft.Type { return append(key[:len(key):len(key)], nft.Number) }
	target := []nft.Type{nft.Address, nft.Port}
	lead := []nft.Rule{
		{nft.GotoByAddress(services)},
		{nft.ToLocal(), nft.NotTo(loopback), nft.GotoByPort(nodePorts)},
		{nft.ToAny(clusterIPs), nft.ByTCP(), nft.RejectTCP()},
		{nft.ToAny(clusterIPs), nft.Reject()},
	}
	return nft.Table{Name: name, Guests: guests,
		Sets: []nft.Set{
			{Name: services, Key: called, Value: []nft.Type{nft.ToChain}},
			{Name: nodePorts, Key: byPort, Value: []nft.Type{nft.ToChain}},
			{Name: endpoints, Key: turn(called), Value: target},
			{Name: localEndpoints, Key: turn(called), Value: target},
			{Name: portEndpoints, Key: turn(byPort), Value: target},
			{Name: portLocalEndpoints, Key: turn(byPort), Value: target},
			{Name: clusterIPs, Key: []nft.Type{nft.Address}},
			{Name: hairpins, Key: []nft.Type{nft.Address, nft.Address}},
			{Name: remote, Key: []nft.Type{nft.Address}},
		},
		Chains: []nft.Chain{
			{Name: "prerouting", NAT: true, Hook: nft.Prerouting, Priority: nft.PriorityDstNAT, Rules: lead},
			{Name: "output", NAT: true, Hook: nft.Output, Priority: nft.PriorityDstNAT, Rules: lead},
			{Name: "postrouting", NAT: true, Hook: nft.Postrouting, Priority: nft.PrioritySrcNAT, Rules: []nft.Rule{
				{nft.PairIn(hairpins), nft.Masquerade()},
				{nft.ForwardedByDNAT(), nft.NotInBy(links), nft.NotOutBy(links), nft.ToAny(remote), nft.Masquerade()},
			}},
		},
	}
}

// piece is what one Service has in the table.
type piece struct {
	sets     []nft.Set
	chains   []nft.Chain
	elements []nft.Element // its own
	shared   []nft.Element // that other Services may have, too
}

// calledKey is the key of an address in the map of services.
func calledKey(protocol byte, at netip.AddrPort) []byte {
	addr := at.Addr().As4()
	return append(addr[:], portKey(protocol, at.Port())...)
}

// portKey is the key of a node port.
func portKey(protocol byte, port uint16) []byte {
	return binary.BigEndian.AppendUint16([]byte{protocol, 0, 0, 0}, port)[:6:6]
}

func padded(key []byte) []byte { return append(key[:len(key):len(key)], 0, 0) }

// called are the keys of all that leads to a Service's port: those of the map of services have 12 bytes, those of node ports
// eight.
func called(p plan.Port) (out [][]byte) {
	for _, list := range [][]netip.AddrPort{{p.Cluster}, p.External, p.Guarded} {
		for _, at := range list {
			if at.IsValid() {
				out = append(out, padded(calledKey(p.Protocol, at)))
			}
		}
	}
	if p.NodePort != 0 {
		out = append(out, padded(portKey(p.Protocol, p.NodePort)))
	}
	return out
}

// renderer makes the pieces of the table.
type renderer struct {
	links string
	node  plan.Node
	pods  netip.Prefix // this node's; may be invalid
}

// render is what a Service has in the table. mine says whether a key of called is this Service's: another one may have it.
func (r renderer) render(s plan.Service, mine func([]byte) bool) (out piece) {
	for _, p := range s.Ports {
		w := portWriter{piece: &out, p: p, r: r, chains: map[string]bool{}, keys: map[string]bool{}}
		w.write(mine)
	}
	return out
}

// portWriter writes one port.
type portWriter struct {
	*piece
	p      plan.Port
	r      renderer
	chains map[string]bool // that are written
	keys   map[string]bool // that lead somewhere: an address may be named twice
}

// way is where a call leads.
type way struct {
	called nft.Called
	local  bool // to endpoints of this node alone, unless it comes from this node
	strict bool // also then
}

func (w *portWriter) write(mine func([]byte) bool) {
	p := w.p
	to := func(list []netip.AddrPort, l way, guarded bool) {
		for _, at := range list {
			if !at.IsValid() {
				continue
			}
			key := padded(calledKey(p.Protocol, at))
			if !mine(key) || w.keys[string(key)] {
				continue
			}
			w.keys[string(key)] = true
			chain := w.lead(key, l)
			if guarded {
				chain = w.guard(chain)
			}
			w.elements = append(w.elements, nft.Element{Set: services, Key: key, Goto: chain})
		}
	}
	to([]netip.AddrPort{p.Cluster}, way{nft.CalledAddress, p.InternalLocal, true}, false)
	to(p.External, way{nft.CalledAddress, p.ExternalLocal, false}, false)
	to(p.Guarded, way{nft.CalledAddress, p.ExternalLocal, false}, true)
	if p.NodePort != 0 {
		if key := padded(portKey(p.Protocol, p.NodePort)); mine(key) {
			chain := w.lead(key, way{nft.CalledPort, p.ExternalLocal, false})
			w.elements = append(w.elements, nft.Element{Set: nodePorts, Key: key, Goto: chain})
		}
	}
	w.addresses()
}

// addresses are what endpoints and the Service's own address need beside the way to them.
func (w *portWriter) addresses() {
	if w.p.Cluster.IsValid() {
		a := w.p.Cluster.Addr().As4()
		w.shared = append(w.shared, nft.Element{Set: clusterIPs, Key: a[:]})
	}
	here := map[netip.Addr]bool{}
	for _, a := range w.r.node.Addresses {
		here[a] = true // its own sockets need neither
	}
	for i, e := range append(w.p.Local[:len(w.p.Local):len(w.p.Local)], w.p.Endpoints...) {
		addr := e.Addr()
		if here[addr] {
			continue
		}
		here[addr] = true
		a := addr.As4()
		if i < len(w.p.Local) || w.r.pods.IsValid() && w.r.pods.Contains(addr) {
			w.shared = append(w.shared, nft.Element{Set: hairpins, Key: append(a[:], a[:]...)})
		} else {
			w.shared = append(w.shared, nft.Element{Set: remote, Key: a[:]})
		}
	}
}

// chain writes a chain once, and is its name.
func (w *portWriter) chain(name string, rules func() []nft.Rule) string {
	if !w.chains[name] {
		w.chains[name] = true
		w.piece.chains = append(w.piece.chains, nft.Chain{Name: name, Rules: rules()})
	}
	return name
}

// lead is the chain for what is called with this key.
func (w *portWriter) lead(key []byte, l way) string {
	switch {
	case !l.local:
		return w.pool(key, l.called, false)
	case l.strict:
		return w.pool(key, l.called, true)
	}
	all, local := w.pool(key, l.called, false), w.pool(key, l.called, true)
	return w.chain(w.named("outside", l.called), func() []nft.Rule {
		return []nft.Rule{{nft.InBy(w.r.links), nft.Goto(all)}, {nft.FromLocal(), nft.Goto(all)}, {nft.Goto(local)}}
	})
}

func (w *portWriter) named(what string, c nft.Called) string {
	if c == nft.CalledPort && w.p.Affinity == 0 {
		what = "port-" + what
	}
	return what + "-" + w.p.Name
}

// guard is a chain in front of another, for the sources that are allowed.
func (w *portWriter) guard(chain string) string {
	return w.chain("guard-"+w.p.Name, func() (out []nft.Rule) {
		for _, s := range w.p.Sources {
			out = append(out, nft.Rule{nft.From(s), nft.Goto(chain)})
		}
		return append(out, nft.Rule{nft.Drop()})
	})
}

// pool is the chain that leads to one of the endpoints, or to one of those of this node.
func (w *portWriter) pool(key []byte, c nft.Called, local bool) string {
	list, what, set := w.p.Endpoints, "svc", endpoints
	if local {
		list, what, set = w.p.Local, "local", localEndpoints
	}
	if c == nft.CalledPort {
		set = "port-" + set
	}
	otherwise := w.reject()
	if local && len(w.p.Endpoints) > 0 {
		otherwise = nft.Rule{nft.Drop()} // none is here, and whoever balances the load looks elsewhere
	}
	if w.p.Affinity > 0 {
		return w.chain(w.named(what, c), func() []nft.Rule {
			if len(list) == 0 {
				return []nft.Rule{otherwise}
			}
			return w.sticky(list)
		})
	}
	n := places(len(list))
	for i := range min(n, n*len(list)) {
		e := list[i%len(list)]
		addr := e.Addr().As4()
		w.elements = append(w.elements, nft.Element{Set: set, Key: nft.TurnKey(key, i),
			Value: append(addr[:], padded(binary.BigEndian.AppendUint16(nil, e.Port()))...)})
	}
	return w.chain(w.named(what, c), func() []nft.Rule { return []nft.Rule{{nft.DNATInTurn(c, n, set)}, otherwise} })
}

// places is how many turns there are for n endpoints. Up to three share six, each the same number of them, so that the
// rule stays when their number changes: for a new rule the kernel checks all chains of the table, which takes milliseconds
// where there are thousands; elements of a map take the same time however many there are. More
// turns would cost at each comparison, which takes time by the square of a map's size.
func places(n int) int {
	if n <= 3 {
		return 6
	}
	return n
}

func (w *portWriter) reject() nft.Rule {
	if w.p.Protocol == unix.IPPROTO_TCP {
		return nft.Rule{nft.ByTCP(), nft.RejectTCP()}
	}
	return nft.Rule{nft.Reject()}
}

// sticky leads a client to the endpoint that remembers it, or else to the next one.
func (w *portWriter) sticky(list []netip.AddrPort) []nft.Rule {
	var known, fresh []nft.Rule
	for i, e := range list {
		name := fmt.Sprintf("%s/%s/%d", w.p.Name, e.Addr(), e.Port())
		set, chain := "clients-"+name, "endpoint-"+name
		if !w.chains[chain] {
			w.sets = append(w.sets, nft.Set{Name: set, Key: []nft.Type{nft.Address}, Dynamic: true, Size: stickySize})
		}
		w.chain(chain, func() []nft.Rule { return []nft.Rule{{nft.Remember(set, w.p.Affinity)}, {nft.DNATTo(e)}} })
		known = append(known, nft.Rule{nft.FromAny(set), nft.Goto(chain)})
		// Of those that come to the first rule every nth stops there, of the others every (n-1)th at the second.
		if left := len(list) - i; left > 1 {
			fresh = append(fresh, nft.Rule{nft.EveryNth(left), nft.Goto(chain)})
		} else {
			fresh = append(fresh, nft.Rule{nft.Goto(chain)})
		}
	}
	return append(known, fresh...)
}
