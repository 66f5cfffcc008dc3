package dns

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"strings"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/nonwriter"
	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"minik8s/internal/dns/names"
)

// ttl is for how long a client may keep an answer about the cluster, in seconds: as CoreDNS' plugin kubernetes has it.
const ttl = 5

// cluster is the plugin that answers for the cluster's domain, for the addresses in it, and for the hosts of DNS objects.
type cluster struct {
	domain  string // in lower case, with a dot at its end
	records *records
	listed  func(context.Context) bool // waits for the first list
	next    plugin.Handler
}

// Name implements plugin.Handler.
func (c *cluster) Name() string { return "cluster" }

// answer is what there is for a question.
type answer struct {
	exists       bool // else NXDOMAIN
	rrs, more    []dns.RR
	serverFailed bool
	has          map[record]bool // what is in it, where the same may come from several slices
}

// record tells records apart.
type record struct {
	name string
	port int32
	addr netip.Addr
}

// first reports whether a record is not in the answer yet, and notes it.
func (a *answer) first(r record) bool {
	if a.has[r] {
		return false
	}
	if a.has == nil {
		a.has = map[record]bool{}
	}
	a.has[r] = true
	return true
}

// ServeDNS implements plugin.Handler.
func (c *cluster) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	state := request.Request{W: w, Req: r}
	name, ours := names.In(c.domain, state.Name())
	var found answer
	zone := c.domain
	switch {
	case ours && !c.listed(ctx):
		return dns.RcodeServerFailure, nil
	case ours:
		found = c.find(ctx, state, name)
	case state.QType() == dns.TypePTR:
		addr, ok := names.Reverse(state.Name())
		if !ok || !c.listed(ctx) {
			break
		}
		for _, n := range c.records.reverse(addr) {
			found.exists = true
			found.rrs = append(found.rrs, &dns.PTR{Hdr: header(state.QName(), dns.TypePTR), Ptr: n + c.domain})
		}
	default:
		if !c.listed(ctx) {
			break
		}
		if at, ok := c.records.host(state.Name()); ok {
			found.exists, zone = true, state.QName()
			found.addresses(state, at)
		}
	}
	if !ours && !found.exists {
		return plugin.NextOrFailure(c.Name(), c.next, ctx, w, r)
	}
	if found.serverFailed {
		return dns.RcodeServerFailure, nil
	}
	m := new(dns.Msg)
	m.SetReply(r)
	m.Authoritative, m.RecursionAvailable = true, true
	m.Answer, m.Extra = found.rrs, found.more
	if !found.exists {
		m.Rcode = dns.RcodeNameError
	}
	if len(m.Answer) == 0 {
		m.Ns = []dns.RR{c.soa(zone)}
	}
	return dns.RcodeSuccess, w.WriteMsg(m)
}

func header(name string, kind uint16) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: kind, Class: dns.ClassINET, Ttl: ttl}
}

// soa is the start of a zone's authority: how long it may be kept that there is no such name.
func (c *cluster) soa(zone string) dns.RR {
	return &dns.SOA{Hdr: header(zone, dns.TypeSOA), Ns: "ns.dns." + c.domain, Mbox: "hostmaster." + c.domain, Serial: 1,
		Refresh: 7200, Retry: 1800, Expire: 86400, Minttl: ttl}
}

// address is the record of an address, if the question asks for its kind.
func address(name string, a netip.Addr, kind uint16) (dns.RR, bool) {
	switch {
	case kind == dns.TypeA && a.Is4():
		return &dns.A{Hdr: header(name, dns.TypeA), A: a.AsSlice()}, true
	case kind == dns.TypeAAAA && a.Is6():
		return &dns.AAAA{Hdr: header(name, dns.TypeAAAA), AAAA: a.AsSlice()}, true
	}
	return nil, false
}

// anyAddress is the record of an address, of whichever kind.
func anyAddress(name string, a netip.Addr) dns.RR {
	if a.Is4() {
		return &dns.A{Hdr: header(name, dns.TypeA), A: a.AsSlice()}
	}
	return &dns.AAAA{Hdr: header(name, dns.TypeAAAA), AAAA: a.AsSlice()}
}

func (c *cluster) find(ctx context.Context, q request.Request, name names.Name) (out answer) {
	switch name.Kind {
	case names.Apex:
		out.exists = true
		switch q.QType() {
		case dns.TypeSOA:
			out.rrs = []dns.RR{c.soa(q.QName())}
		case dns.TypeNS:
			out.rrs = []dns.RR{&dns.NS{Hdr: header(q.QName(), dns.TypeNS), Ns: "ns.dns." + c.domain}}
		}
	case names.Version:
		out.exists = true
		if q.QType() == dns.TypeTXT {
			out.rrs = []dns.RR{&dns.TXT{Hdr: header(q.QName(), dns.TypeTXT), Txt: []string{names.Spec}}}
		}
	case names.NameServer:
		out.exists = true
		if local, err := netip.ParseAddrPort(q.W.LocalAddr().String()); err == nil { // it is whoever was asked
			out.addresses(q, local.Addr().Unmap())
		}
	case names.Branch, names.PodNamespace: // below the second there is every address
		out.exists = true
	case names.Namespace:
		out.exists = c.records.hasNamespace(name.Namespace)
	case names.Pod: // as CoreDNS' "pods insecure", the default of kubeadm: it only writes the address in another way
		out.exists = true
		out.addresses(q, name.Address)
	case names.Service, names.Protocol, names.Port, names.Endpoint:
		if svc, ok := c.records.service(name.Namespace, name.Service); ok {
			out = c.ofService(ctx, q, svc, name)
		}
	}
	return out
}

func (a *answer) addresses(q request.Request, addrs ...netip.Addr) {
	for _, addr := range addrs {
		if rr, ok := address(q.QName(), addr, q.QType()); ok {
			a.rrs = append(a.rrs, rr)
		}
	}
}

// ofService answers for a Service's name, or one below it.
func (c *cluster) ofService(ctx context.Context, q request.Request, svc *corev1.Service, name names.Name) (out answer) {
	full := svc.Name + "." + svc.Namespace + ".svc." + c.domain
	if svc.Spec.Type == corev1.ServiceTypeExternalName {
		if name.Kind != names.Service {
			return out
		}
		return c.alias(ctx, q, strings.ToLower(dns.Fqdn(svc.Spec.ExternalName)))
	}
	addrs := clusterIPs(svc)
	headless := len(addrs) == 0
	switch {
	case name.Kind == names.Endpoint || name.Kind == names.Service && headless && q.QType() != dns.TypeSRV:
		c.endpoints(svc, func(a netip.Addr, label string, _ []discoveryv1.EndpointPort) {
			if name.Kind == names.Service || label == name.Hostname {
				out.exists = true
				if out.first(record{addr: a}) {
					out.addresses(q, a)
				}
			}
		})
	case name.Kind == names.Service && q.QType() != dns.TypeSRV:
		out.exists = true
		out.addresses(q, addrs...)
	case headless:
		c.endpoints(svc, func(a netip.Addr, label string, ports []discoveryv1.EndpointPort) {
			out.exists = out.exists || name.Kind == names.Service // it has addresses, if no ports
			for _, p := range ports {
				if p.Port != nil && wants(name, ptr.Deref(p.Name, ""), ptr.Deref(p.Protocol, corev1.ProtocolTCP)) {
					out.service(q, *p.Port, label+"."+full, a)
				}
			}
		})
	default:
		for _, p := range svc.Spec.Ports {
			if wants(name, p.Name, p.Protocol) {
				out.service(q, p.Port, full, addrs...)
			}
		}
	}
	// Clients often use the first one only.
	rand.Shuffle(len(out.rrs), func(i, j int) { out.rrs[i], out.rrs[j] = out.rrs[j], out.rrs[i] })
	return out
}

// wants reports whether a port is one that a name asks for.
func wants(name names.Name, port string, protocol corev1.Protocol) bool {
	if name.Kind == names.Service {
		return true
	}
	if !strings.EqualFold(name.Protocol, string(protocol)) {
		return false
	}
	return name.Kind == names.Protocol || name.Port == port && port != ""
}

// service adds that a port is at target, and target's addresses.
func (a *answer) service(q request.Request, port int32, target string, addrs ...netip.Addr) {
	a.exists = true
	if q.QType() != dns.TypeSRV {
		return
	}
	if a.first(record{name: target, port: port}) {
		a.rrs = append(a.rrs, &dns.SRV{Hdr: header(q.QName(), dns.TypeSRV), Weight: 100, Port: uint16(port), Target: target})
	}
	for _, addr := range addrs {
		if a.first(record{name: target, addr: addr}) {
			a.more = append(a.more, anyAddress(target, addr))
		}
	}
}

// endpoints calls f with a Service's ready endpoints, once for each slice that has them.
func (c *cluster) endpoints(svc *corev1.Service, f func(a netip.Addr, label string, ports []discoveryv1.EndpointPort)) {
	for _, s := range c.records.slicesOf(svc) {
		each(s, func(a netip.Addr, e *discoveryv1.Endpoint) { f(a, hostname(a, e), s.Ports) })
	}
}

// most is how many aliases are followed.
const most = 8

type depthKey struct{}

// alias answers that a Service is another name, with what that name has.
func (c *cluster) alias(ctx context.Context, q request.Request, target string) (out answer) {
	out.exists = true
	out.rrs = []dns.RR{&dns.CNAME{Hdr: header(q.QName(), dns.TypeCNAME), Target: target}}
	if q.QType() == dns.TypeCNAME || q.QType() != dns.TypeA && q.QType() != dns.TypeAAAA {
		return out
	}
	depth, _ := ctx.Value(depthKey{}).(int)
	if depth == most {
		out.serverFailed = true
		return out
	}
	asked := q.NewWithQuestion(target, q.QType())
	asked.Req.RecursionDesired = true
	w := nonwriter.New(q.W)
	rcode, err := c.ServeDNS(context.WithValue(ctx, depthKey{}, depth+1), w, asked.Req)
	if err != nil || w.Msg == nil || w.Msg.Rcode == dns.RcodeServerFailure || w.Msg.Rcode == dns.RcodeRefused || !plugin.ClientWrite(rcode) {
		out.serverFailed = true // to say that there is no address would be final
		return out
	}
	out.exists = w.Msg.Rcode != dns.RcodeNameError // the last name's, as RFC 6604 has it
	out.rrs = append(out.rrs, w.Msg.Answer...)
	return out
}
