package backends

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// Name names a Service.
type Name struct{ Namespace, Name string }

// Port is a port of a Service, by number or name; or an address that belongs to none.
type Port struct {
	Service Name
	Port    string
	Address netip.AddrPort
}

// Book is the pools of all ports that routes lead to.
type Book struct {
	// New makes what an endpoint keeps; Gone is called with one that is in no pool any more. Requests may still have it. They
	// must not call the book.
	New  func(address string) any
	Gone func(*Endpoint)

	mu        sync.Mutex
	pools     map[Port]*Pool
	of        map[Name][]Port
	endpoints map[string]*shared // by address
}

type shared struct {
	Endpoint
	pools int
}

// NewBook makes an empty one.
func NewBook() *Book {
	return &Book{pools: map[Port]*Pool{}, of: map[Name][]Port{}, endpoints: map[string]*shared{}}
}

// Want says which ports routes lead to: pools of others end. It returns the Services of which a port is new: Set has to tell
// of them before requests come.
func (b *Book) Want(ports []Port) (fresh []Name) {
	b.mu.Lock()
	defer b.mu.Unlock()
	wanted := map[Port]bool{}
	for _, p := range ports {
		wanted[p] = true
		if b.pools[p] != nil {
			continue
		}
		pool := &Pool{}
		pool.state.Store(&state{})
		b.pools[p] = pool
		if p.Address.IsValid() {
			b.change(pool, &state{}, []string{p.Address.String()})
			continue
		}
		b.of[p.Service] = append(b.of[p.Service], p)
		if !slices.Contains(fresh, p.Service) {
			fresh = append(fresh, p.Service)
		}
	}
	for p, pool := range b.pools {
		if wanted[p] {
			continue
		}
		b.leave(pool.state.Load()) // which it keeps, for requests that have found it before
		delete(b.pools, p)
		if rest := slices.DeleteFunc(b.of[p.Service], func(q Port) bool { return q == p }); len(rest) > 0 {
			b.of[p.Service] = rest
		} else {
			delete(b.of, p.Service)
		}
	}
	return fresh
}

// Wanted says whether a route leads to the Service.
func (b *Book) Wanted(n Name) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.of[n]) > 0
}

// Pool is the pool of a port that is wanted.
func (b *Book) Pool(p Port) *Pool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pools[p]
}

// Set says what a Service is now, with its slices; svc is nil if there is none.
func (b *Book) Set(n Name, svc *corev1.Service, list []*discoveryv1.EndpointSlice) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.of[n] {
		s, addresses := plan(p, svc, list)
		b.change(b.pools[p], s, addresses)
	}
}

// change gives a pool its endpoints: those that it shares with others are the same.
func (b *Book) change(pool *Pool, s *state, addresses []string) {
	before := pool.state.Load()
	for _, a := range addresses {
		e := b.endpoints[a]
		if e == nil {
			e = &shared{Endpoint: Endpoint{Address: a}}
			if b.New != nil {
				e.Kept = b.New(a)
			}
			b.endpoints[a] = e
		}
		e.pools++
		s.endpoints = append(s.endpoints, &e.Endpoint)
	}
	if s.affinity == 0 && before.affinity != 0 {
		pool.clients.forget()
	}
	pool.state.Store(s)
	b.leave(before)
}

// leave says that a pool has not these endpoints any more.
func (b *Book) leave(s *state) {
	for _, e := range s.endpoints {
		all := b.endpoints[e.Address]
		if all.pools--; all.pools == 0 {
			delete(b.endpoints, e.Address)
			if b.Gone != nil {
				b.Gone(e)
			}
		}
	}
}

// Lack is what a port needs to have endpoints, the first thing first.
type Lack int

// What a port may lack.
const (
	Nothing Lack = iota
	NoService
	NoPort
	NoEndpoints
)

// Missing says what a port lacks, and why it has no endpoint, for a person. It is for who reports on routes, so that the
// report and the gateway agree.
func Missing(p Port, svc *corev1.Service, list []*discoveryv1.EndpointSlice) (Lack, string) {
	s, _ := plan(p, svc, list)
	return s.lack, s.why
}

// plan is what a Service's port leads to.
func plan(p Port, svc *corev1.Service, list []*discoveryv1.EndpointSlice) (*state, []string) {
	name := p.Service.Namespace + "/" + p.Service.Name
	if svc == nil {
		return &state{lack: NoService, why: fmt.Sprintf("Service %s does not exist.", name)}, nil
	}
	i := slices.IndexFunc(svc.Spec.Ports, func(q corev1.ServicePort) bool {
		return (q.Protocol == corev1.ProtocolTCP || q.Protocol == "") && (q.Name == p.Port || strconv.Itoa(int(q.Port)) == p.Port)
	})
	if svc.Spec.Type == corev1.ServiceTypeExternalName {
		port := p.Port
		if i >= 0 {
			port = strconv.Itoa(int(svc.Spec.Ports[i].Port))
		}
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return &state{lack: NoPort, why: fmt.Sprintf("Service %s has no port %s.", name, p.Port)}, nil
		}
		return &state{}, []string{svc.Spec.ExternalName + ":" + port}
	}
	if i < 0 {
		return &state{lack: NoPort, why: fmt.Sprintf("Service %s has no TCP port %s.", name, p.Port)}, nil
	}
	s := &state{}
	if a := svc.Spec.Ports[i].AppProtocol; a != nil {
		s.protocol = protocolOf(*a)
	}
	s.affinity = affinityOf(svc)
	addresses := addressesOf(list, svc.Spec.Ports[i].Name)
	if len(addresses) == 0 {
		s.lack, s.why = NoEndpoints, fmt.Sprintf("Service %s has no endpoint that is ready.", name)
	}
	return s, addresses
}

// protocolOf is what an appProtocol means: IANA's names, Kubernetes' own, and the one that people write for gRPC.
func protocolOf(name string) Protocol {
	switch strings.ToLower(name) {
	case "kubernetes.io/h2c", "grpc":
		return H2C
	case "https", "kubernetes.io/wss":
		return HTTPS
	}
	return HTTP
}

// affinityOf is for how long a client stays with an endpoint.
func affinityOf(svc *corev1.Service) time.Duration {
	if svc.Spec.SessionAffinity != corev1.ServiceAffinityClientIP {
		return 0
	}
	seconds := int32(corev1.DefaultClientIPServiceAffinitySeconds)
	if c := svc.Spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
		seconds = *c.ClientIP.TimeoutSeconds
	}
	return time.Duration(seconds) * time.Second
}

// addressesOf are the endpoints of a port that get requests, sorted: those that are ready, or else those that end and still
// serve.
func addressesOf(list []*discoveryv1.EndpointSlice, port string) []string {
	var ready, ending []string
	for _, s := range list {
		if s.AddressType == discoveryv1.AddressTypeFQDN || s.DeletionTimestamp != nil {
			continue
		}
		i := slices.IndexFunc(s.Ports, func(q discoveryv1.EndpointPort) bool {
			return (q.Name == nil && port == "" || q.Name != nil && *q.Name == port) && (q.Protocol == nil || *q.Protocol == corev1.ProtocolTCP) &&
				q.Port != nil && *q.Port > 0 && *q.Port < 1<<16
		})
		if i < 0 {
			continue
		}
		for _, e := range s.Endpoints {
			if len(e.Addresses) == 0 { // more than one are all the same endpoint
				continue
			}
			addr, err := netip.ParseAddr(e.Addresses[0])
			if err != nil {
				continue
			}
			at := netip.AddrPortFrom(addr, uint16(*s.Ports[i].Port)).String()
			c := e.Conditions
			switch {
			case c.Ready == nil || *c.Ready:
				ready = append(ready, at)
			case c.Serving != nil && *c.Serving && c.Terminating != nil && *c.Terminating:
				ending = append(ending, at)
			}
		}
	}
	if len(ready) == 0 {
		ready = ending
	}
	slices.Sort(ready)
	return slices.Compact(ready) // while slices are rewritten an endpoint may be in two of them
}
