// Package names reads the names of a cluster's DNS, after Kubernetes' specification (kubernetes/dns docs/specification.md,
// version 1.1.0). It is pure, and knows no Service.
package names

import (
	"net/netip"
	"strings"
)

// Kind is what a name asks for.
type Kind int

const (
	// None: there is no such name, whatever the cluster has.
	None Kind = iota
	// Apex is the domain itself.
	Apex
	// Version is dns-version, which has the version of the specification as a text.
	Version
	// Branch has no records of its own, but names below it: svc, pod.
	Branch
	// NameServer is the host of the domain's name server.
	NameServer
	// Namespace is NAMESPACE.svc, and PodNamespace NAMESPACE.pod.
	Namespace
	PodNamespace
	// Service is SERVICE.NAMESPACE.svc.
	Service
	// Protocol is _PROTOCOL.SERVICE.NAMESPACE.svc.
	Protocol
	// Port is _PORT._PROTOCOL.SERVICE.NAMESPACE.svc.
	Port
	// Endpoint is HOSTNAME.SERVICE.NAMESPACE.svc.
	Endpoint
	// Pod is ADDRESS.NAMESPACE.pod, the address with dashes.
	Pod
)

// Name is a name in the cluster's domain.
type Name struct {
	Kind               Kind
	Namespace, Service string
	Port, Protocol     string // without underscores
	Hostname           string
	Address            netip.Addr // of a Pod
}

// Spec is the version of the specification.
const Spec = "1.1.0"

// In reads a name, and reports whether it is in the domain. Both end with a dot; name is in lower case.
func In(domain, name string) (Name, bool) {
	rest, ok := strings.CutSuffix(name, domain)
	if !ok || rest != "" && rest[len(rest)-1] != '.' {
		return Name{}, false
	}
	rest = strings.TrimSuffix(rest, ".")
	switch rest {
	case "":
		return Name{Kind: Apex}, true
	case "dns-version":
		return Name{Kind: Version}, true
	case "ns.dns":
		return Name{Kind: NameServer}, true
	case "svc", "pod", "dns":
		return Name{Kind: Branch}, true
	}
	if below, ok := strings.CutSuffix(rest, ".svc"); ok {
		return ofService(below), true
	}
	if below, ok := strings.CutSuffix(rest, ".pod"); ok {
		return ofPod(below), true
	}
	return Name{}, true
}

func ofService(s string) Name {
	var n Name
	rest, ns, ok := cutLast(s)
	n.Namespace = ns
	if !ok {
		n.Kind = Namespace
		return n
	}
	rest, n.Service, ok = cutLast(rest)
	if !ok {
		n.Kind = Service
		return n
	}
	port, last, two := cutLast(rest)
	protocol, is := strings.CutPrefix(last, "_")
	switch {
	case !two && is:
		n.Kind, n.Protocol = Protocol, protocol
	case !two:
		n.Kind, n.Hostname = Endpoint, last
	default:
		name, named := strings.CutPrefix(port, "_")
		if !is || !named || strings.Contains(name, ".") {
			return Name{}
		}
		n.Kind, n.Protocol, n.Port = Port, protocol, name
	}
	return n
}

func ofPod(s string) Name {
	address, ns, ok := cutLast(s)
	if !ok {
		return Name{Kind: PodNamespace, Namespace: ns}
	}
	addr, ok := Undashed(address)
	if !ok {
		return Name{}
	}
	return Name{Kind: Pod, Namespace: ns, Address: addr}
}

// cutLast splits a name at its last dot; ok is false if it has none: then all of it is last.
func cutLast(s string) (rest, last string, ok bool) {
	i := strings.LastIndexByte(s, '.')
	if i < 0 {
		return "", s, false
	}
	return s[:i], s[i+1:], true
}

// Dashed is an address as a label: 10-0-0-1.
func Dashed(a netip.Addr) string {
	if a.Is4() {
		return strings.ReplaceAll(a.String(), ".", "-")
	}
	return strings.ReplaceAll(a.StringExpanded(), ":", "-")
}

// Undashed is the address of a label that Dashed has made, or one in a shorter form.
func Undashed(label string) (netip.Addr, bool) {
	if strings.Count(label, "-") == 3 && !strings.Contains(label, "--") {
		if a, err := netip.ParseAddr(strings.ReplaceAll(label, "-", ".")); err == nil {
			return a, true
		}
	}
	a, err := netip.ParseAddr(strings.ReplaceAll(label, "-", ":"))
	return a, err == nil && a.Is6()
}

// Reverse is the address that a name below in-addr.arpa or ip6.arpa is about; name is in lower case.
func Reverse(name string) (netip.Addr, bool) {
	if s, ok := strings.CutSuffix(name, ".in-addr.arpa."); ok {
		parts := strings.Split(s, ".")
		if len(parts) != 4 {
			return netip.Addr{}, false
		}
		a, err := netip.ParseAddr(parts[3] + "." + parts[2] + "." + parts[1] + "." + parts[0])
		return a, err == nil
	}
	s, ok := strings.CutSuffix(name, ".ip6.arpa.")
	if !ok || len(s) != 63 {
		return netip.Addr{}, false
	}
	var b strings.Builder
	for i := 62; i >= 0; i -= 2 {
		b.WriteByte(s[i])
		if i > 0 && i%8 == 0 {
			b.WriteByte(':')
		}
		if i > 0 && s[i-1] != '.' {
			return netip.Addr{}, false
		}
	}
	a, err := netip.ParseAddr(b.String())
	return a, err == nil
}
