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
	any       *site    // the gateway's own addresses
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
	slices.SortFunc(t.routes, func(a, b *Route) int {
		return cmp.Or(a.Owner.compare(b.Owner), a.Address.Compare(b.Address), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Match, b.Match), cmp.Compare(a.Backend.String(), b.Backend.String()))
	})
	slices.SortFunc(t.certs, func(a, b Certificate) int {
		return cmp.Or(a.Owner.compare(b.Owner), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Secret.Name, b.Secret.Name))
	})
	for _, r := range t.routes {
		if r.Address.IsValid() && t.sites[r.Address] == nil {
			t.sites[r.Address] = &site{}
		}
	}
	lost := map[*Route]bool{}
	for _, r := range t.routes {
		for _, s := range t.at(r.Address) {
			if of := s.add(r); of != nil && !lost[r] {
				lost[r] = true
				t.conflicts = append(t.conflicts, Conflict{r, of})
			}
		}
	}
	for _, c := range t.certs {
		for _, s := range t.at(c.Address) {
			s.certify(c)
		}
	}
	return t
}

// at are the sites that something for an address is for.
func (t *Table) at(a netip.Addr) (out []*site) {
	if a.IsValid() {
		if s := t.sites[a]; s != nil {
			out = append(out, s)
		}
		return out
	}
	out = append(out, t.any)
	for _, s := range t.sites {
		out = append(out, s)
	}
	return out
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
	if h := s.exact[name]; h != nil {
		if r := h.find(path); r != nil {
			return r
		}
	}
	if len(s.wildcard) > 0 {
		if h := s.wildcard[parent(name)]; h != nil {
			if r := h.find(path); r != nil {
				return r
			}
		}
	}
	if s.fallback != nil {
		return s.fallback.find(path)
	}
	return nil
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
	s := t.site(at)
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
	slices.SortFunc(routes, func(a, b *Route) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Match, b.Match)) })
	slices.SortFunc(owners, Owner.compare)
	return slices.Compact(owners), routes
}

// Certificate is the Secret for a name that a client asks for at an address.
func (t *Table) Certificate(at netip.Addr, name string) (SecretName, bool) {
	s := t.site(at)
	if c, ok := s.certs[name]; ok {
		return c, true
	}
	if up := parent(name); up != "" {
		if c, ok := s.certs["*."+up]; ok {
			return c, true
		}
	}
	c, ok := s.certs[""]
	return c, ok
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
