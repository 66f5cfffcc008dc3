package routes

import (
	"cmp"
	"net/netip"
	"strings"
	"time"
)

// Match is how a route's path is compared.
type Match int

const (
	// Prefix matches the path and what is below it: /a matches /a, /a/ and /a/b, not /ab.
	Prefix Match = iota
	// Exact matches the very path.
	Exact
)

// Owner is the object that wants a route.
type Owner struct {
	Kind, Namespace, Name string
	Created               time.Time
}

// String names the owner in messages.
func (o Owner) String() string { return o.Kind + " " + o.Namespace + "/" + o.Name }

func (o *Owner) compare(p *Owner) int {
	if c := o.Created.Compare(p.Created); c != 0 {
		return c
	}
	return cmp.Or(strings.Compare(o.Kind, p.Kind), strings.Compare(o.Namespace, p.Namespace), strings.Compare(o.Name, p.Name))
}

// Backend is where a route leads: a port of a Service, or an address.
type Backend struct {
	Namespace, Service string
	// Port is the number or the name of the Service's port.
	Port string
	// Address is set instead: where to connect, whatever Service has it.
	Address netip.AddrPort
}

// String names the backend in messages.
func (b Backend) String() string {
	if b.Service == "" {
		return b.Address.String()
	}
	return "Service " + b.Namespace + "/" + b.Service + " port " + b.Port
}

// Route leads requests to a backend.
type Route struct {
	// Address is where it is served; the zero value: at every address of the gateway, and a reason to listen at its own.
	Address netip.Addr
	// Host is a name in lower case, "*." and a name for all names with one label more, or "" for any host.
	Host string
	// Path begins with a slash. For a prefix a slash at its end says nothing.
	Path  string
	Match Match
	// Strip removes the matched prefix from what the backend sees.
	Strip   bool
	Backend Backend
	Owner   Owner

	segments int // of Path
}

// Certificate says which Secret has the certificate of a host.
type Certificate struct {
	Address netip.Addr // as in Route
	Host    string     // as in Route
	Secret  SecretName
	Owner   Owner
}

// SecretName names a Secret.
type SecretName struct{ Namespace, Name string }

// Set is what a front end wants.
type Set struct {
	Routes       []Route
	Certificates []Certificate
}

// compare is the order in which routes are given their places. It leaves nothing to chance.
func (r *Route) compare(s *Route) int {
	if c := r.Owner.compare(&s.Owner); c != 0 {
		return c
	}
	return cmp.Or(r.Address.Compare(s.Address), strings.Compare(r.Host, s.Host), strings.Compare(r.Path, s.Path), cmp.Compare(r.Match, s.Match),
		strings.Compare(r.Backend.Service, s.Backend.Service), strings.Compare(r.Backend.Port, s.Backend.Port), r.Backend.Address.Compare(s.Backend.Address))
}

// Split is what of an escaped request path is stripped, and what the backend gets.
func (r *Route) Split(path string) (prefix, rest string) {
	if !r.Strip || r.segments == 0 {
		return "", path
	}
	at := 0
	for range r.segments {
		next := strings.IndexByte(path[min(at+1, len(path)):], '/')
		if next < 0 {
			return path, "/"
		}
		at += 1 + next
	}
	return path[:at], path[at:]
}

// normal is the form under which paths of routes are kept.
func (r *Route) normal() string {
	if r.Match == Exact {
		return r.Path
	}
	return strings.TrimRight(r.Path, "/")
}
