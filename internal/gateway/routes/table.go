package routes

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// Table finds the route of a request.
type Table struct {
	routes    []*Route // in order of precedence among equals
	any       *site    // what is for every address
	sites     map[netip.Addr]*site
	conflicts []Conflict
	certs     []Certificate
}

// Conflict is a route that another one has, an older one's.
type Conflict struct{ Route, Of *Route }

// site is one address.
type site struct {
	exact, wildcard map[string]*host // wildcard: without "*."
	fallback        *host            // any host
	certs           map[string]SecretName
}

// host is what there is under one host name.
type host struct {
	exact, prefix map[string]*Route
	longest       int // prefix
	owners        []Owner
}

// New makes the table of some sets.
func New(sets ...Set) *Table {
	t := &Table{sites: map[netip.Addr]*site{}, any: &site{}}
	for _, s := range sets {
		for _, r := range s.Routes {
			r.Host, r.segments = strings.ToLower(r.Host), strings.Count(strings.TrimRight(r.Path, "/"), "/")
			t.routes = append(t.routes, &r)
		}
		t.certs = append(t.certs, s.Certificates...)
	}
	slices.SortFunc(t.routes, (*Route).compare)
	slices.SortFunc(t.certs, func(a, b Certificate) int {
		return cmp.Or(a.Owner.compare(&b.Owner), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Secret.Name, b.Secret.Name))
	})
	for _, r := range t.routes {
		if r.Address.IsValid() && t.sites[r.Address] == nil {
			t.sites[r.Address] = &site{}
		}
	}
	for _, r := range t.routes { // the older ones first
		var of *Route
		if s := t.site(r.Address); s != t.any {
			of = t.any.has(r)
		}
		if of == nil {
			of = t.site(r.Address).add(r)
		}
		if of != nil {
			t.conflicts = append(t.conflicts, Conflict{r, of})
		}
	}
	for _, c := range t.certs {
		if s := t.site(c.Address); s != t.any || !c.Address.IsValid() {
			s.certify(c)
		}
	}
	return t
}

// has is the route that has the very place of another one.
func (s *site) has(r *Route) *Route {
	h := s.exact[r.Host]
	if rest, ok := strings.CutPrefix(r.Host, "*."); ok {
		h = s.wildcard[rest]
	} else if r.Host == "" {
		h = s.fallback
	}
	if h == nil {
		return nil
	}
	if r.Match == Exact {
		return h.exact[r.Path]
	}
	return h.prefix[r.normal()]
}

// add adds a route; if an older one has its place already, that one is returned.
func (s *site) add(r *Route) *Route {
	h := s.host(r.Host)
	m, key := &h.prefix, r.normal()
	if r.Match == Exact {
		m = &h.exact
	}
	if of := (*m)[key]; of != nil {
		return of
	}
	if *m == nil {
		*m = map[string]*Route{}
	}
	(*m)[key] = r
	if r.Match == Prefix {
		h.longest = max(h.longest, len(key))
	}
	if !slices.Contains(h.owners, r.Owner) {
		h.owners = append(h.owners, r.Owner)
	}
	return nil
}

func (s *site) host(name string) *host {
	m := &s.exact
	if name == "" {
		if s.fallback == nil {
			s.fallback = &host{}
		}
		return s.fallback
	}
	if rest, ok := strings.CutPrefix(name, "*."); ok {
		m, name = &s.wildcard, rest
	}
	if *m == nil {
		*m = map[string]*host{}
	}
	if (*m)[name] == nil {
		(*m)[name] = &host{}
	}
	return (*m)[name]
}

func (s *site) certify(c Certificate) {
	if s.certs == nil {
		s.certs = map[string]SecretName{}
	}
	if name := strings.ToLower(c.Host); s.certs[name] == (SecretName{}) {
		s.certs[name] = c.Secret
	}
}

// Find is the route of a request: the address at which it came, the name of its host and its path, decoded; nil: none. It
// keeps neither host nor path.
func (t *Table) Find(at netip.Addr, name, path string) *Route {
	s := t.site(at)
	if r := t.better(s.exact[name], t.any.exact[name], path); r != nil {
		return r
	}
	if len(s.wildcard)+len(t.any.wildcard) > 0 {
		up := parent(name)
		if r := t.better(s.wildcard[up], t.any.wildcard[up], path); r != nil {
			return r
		}
	}
	return t.better(s.fallback, t.any.fallback, path)
}

// better is the route of a path under a name at one address, or at every address. Of two in the same place the one at the
// address is the older: else it would not be there.
func (t *Table) better(here, every *host, path string) *Route {
	a := here.find(path)
	if here == every {
		return a
	}
	b := every.find(path)
	if a == nil || b != nil && cmp.Or(cmp.Compare(b.Match, a.Match), cmp.Compare(len(b.normal()), len(a.normal()))) > 0 {
		return b
	}
	return a
}

func (t *Table) site(at netip.Addr) *site {
	if s := t.sites[at]; s != nil {
		return s
	}
	return t.any
}

// parent is a name without its first label; "" if that is all.
func parent(name string) string {
	if i := strings.IndexByte(name, '.'); i > 0 {
		return name[i+1:]
	}
	return ""
}

func (h *host) find(path string) *Route {
	if h == nil {
		return nil
	}
	if r := h.exact[path]; r != nil {
		return r
	}
	if len(h.prefix) == 0 {
		return nil
	}
	for end := len(path); end >= 0; end = strings.LastIndexByte(path[:end], '/') {
		if end <= h.longest {
			if r := h.prefix[path[:end]]; r != nil {
				return r
			}
		}
		if end == 0 {
			break
		}
	}
	return nil
}

// At are the owners that have the host at an address, and what they have there: for a message to somebody who found nothing.
func (t *Table) At(at netip.Addr, name string) (owners []Owner, routes []*Route) {
	sites := []*site{t.any}
	if s := t.site(at); s != t.any {
		sites = append(sites, s)
	}
	for _, s := range sites {
		for _, h := range []*host{s.exact[name], s.wildcard[parent(name)], s.fallback} {
			if h == nil {
				continue
			}
			for _, m := range []map[string]*Route{h.exact, h.prefix} {
				for _, r := range m {
					routes = append(routes, r)
				}
			}
			owners = append(owners, h.owners...)
		}
	}
	slices.SortFunc(routes, func(a, b *Route) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Match, b.Match)) })
	slices.SortFunc(owners, func(a, b Owner) int { return a.compare(&b) })
	return slices.Compact(owners), routes
}

// Certificate is the Secret for a name that a client asks for at an address.
func (t *Table) Certificate(at netip.Addr, name string) (SecretName, bool) {
	names := []string{name, ""}
	if up := parent(name); up != "" {
		names = []string{name, "*." + up, ""}
	}
	for _, n := range names {
		for _, s := range []*site{t.site(at), t.any} {
			if c, ok := s.certs[n]; ok {
				return c, true
			}
		}
	}
	return SecretName{}, false
}

// Names reports whether a Secret is that of a certificate here.
func (t *Table) Names(secret SecretName) bool {
	return slices.ContainsFunc(t.certs, func(c Certificate) bool { return c.Secret == secret })
}

// Addresses are those that routes are for, sorted; own says whether some are for the gateway's own.
func (t *Table) Addresses() (list []netip.Addr, own bool) {
	for a := range t.sites {
		list = append(list, a)
	}
	slices.SortFunc(list, netip.Addr.Compare)
	return list, t.any.exact != nil || t.any.wildcard != nil || t.any.fallback != nil
}

// Routes are all of them, also those that lost.
func (t *Table) Routes() []*Route { return t.routes }

// Conflicts are the routes that are not in effect, because an older owner has their place.
func (t *Table) Conflicts() []Conflict { return t.conflicts }
