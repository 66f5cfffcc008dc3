package gateway

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"minik8s/internal/api"
	"minik8s/internal/gateway/backends"
	"minik8s/internal/gateway/plain"
	"minik8s/internal/gateway/routes"
	"minik8s/internal/idle"
	"minik8s/internal/informer"
)

// Source is what a Gateway follows: an informer of a kind in all namespaces, which the Gateway runs.
type Source[T api.Object] interface {
	OnChange(informer.Handler[T])
	Get(namespace, name string) (T, bool)
	List() []T
	Run(ctx context.Context, ready func()) error
}

var (
	_ Source[*corev1.Service]            = (*informer.Informer[*corev1.Service])(nil)
	_ Source[*discoveryv1.EndpointSlice] = (*informer.Informer[*discoveryv1.EndpointSlice])(nil)
)

// Config is what a Gateway is made from.
type Config struct {
	// Addresses are the gateway's own, for routes that have none: Ingresses. SetAddresses changes them.
	Addresses []netip.Addr
	// HTTP and HTTPS are the ports; 0: 80 and 443.
	HTTP, HTTPS uint16
	// Follow tells the Secret of a certificate, and each change of it until ctx ends: nil, if there is none, or why it cannot be
	// read. It is called when a client first asks for a host whose certificate that is. Nil: there are none.
	Follow func(ctx context.Context, namespace, name string, told func(*corev1.Secret, error))
	// Opened is called after each change of Doors. Nil: nobody wants to know. It must return at once.
	Opened func()
	Log    *slog.Logger

	// Tests have less patience than headTime, stallTime and answerTime.
	headTime, stallTime, answerTime time.Duration
}

// Gateway answers HTTP for routes on this node.
type Gateway struct {
	cfg       Config
	fronts    []FrontEnd
	services  Source[*corev1.Service]
	slices    Source[*discoveryv1.EndpointSlice]
	book      *backends.Book
	view      atomic.Pointer[view]
	doors     *doors
	server    *http.Server
	dialer    net.Dialer
	transport transports
	plain     *plain.Server
	certs     certificates
	wake      chan struct{}

	seen struct { // what the informers have told
		sync.Mutex
		routes    bool // they have changed
		working   bool // what has been taken from here is not in effect yet
		dirty     map[backends.Name]bool
		slices    map[backends.Name]map[string]bool // the slices of the Services that routes lead to
		addresses map[netip.Addr]bool               // that routes lead to
		own       []netip.Addr
	}
}

// view is what requests go by.
type view struct {
	table *routes.Table
	pools map[*routes.Route]*backends.Pool
}

// find is the route of a request and its pool.
func (g *Gateway) find(at netip.Addr, host, path string) (*routes.Route, *backends.Pool) {
	v := g.view.Load()
	r := v.table.Find(at, host, path)
	return r, v.pools[r]
}

// New makes a Gateway for what some front ends want.
func New(cfg Config, services Source[*corev1.Service], endpointSlices Source[*discoveryv1.EndpointSlice], fronts ...FrontEnd) *Gateway {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.headTime, cfg.stallTime, cfg.answerTime = cmp.Or(cfg.headTime, headTime), cmp.Or(cfg.stallTime, stallTime), cmp.Or(cfg.answerTime, answerTime)
	if cfg.HTTP == 0 {
		cfg.HTTP = 80
	}
	if cfg.HTTPS == 0 {
		cfg.HTTPS = 443
	}
	g := &Gateway{cfg: cfg, fronts: fronts, services: services, slices: endpointSlices, book: backends.NewBook(), wake: make(chan struct{}, 1)}
	g.book.New = func(address string) any { return g.plain.Upstreams(address) }
	g.book.Gone = func(e *backends.Endpoint) { e.Kept.(*idle.Pool).Close() }
	g.plain = plain.New(plain.Config{Find: g.find, Hand: g.hand, Dial: g.dial, HeadTime: cfg.headTime, IdleTime: idleTime, ReachTime: reachTime, AnswerTime: cfg.answerTime,
		KeepTime: keepTime, KeepEach: keepEach, Log: cfg.Log})
	g.seen.dirty, g.seen.slices, g.seen.addresses = map[backends.Name]bool{}, map[backends.Name]map[string]bool{}, map[netip.Addr]bool{}
	g.seen.own = slices.Clone(cfg.Addresses)
	g.view.Store(&view{table: routes.New()})
	g.dialer = g.newDialer()
	g.transport = g.newTransports()
	g.certs.follow, g.certs.log = cfg.Follow, cfg.Log
	g.server = g.newServer()
	g.doors = newDoors(g)
	services.OnChange(g.service)
	endpointSlices.OnChange(g.slice)
	for _, f := range fronts {
		f.OnChange(func() {
			g.seen.Lock()
			g.seen.routes = true
			g.seen.Unlock()
			g.poke()
		})
	}
	return g
}

// SetAddresses tells of a change of the gateway's own addresses.
func (g *Gateway) SetAddresses(list []netip.Addr) {
	g.seen.Lock()
	g.seen.own, g.seen.routes = slices.Clone(list), true
	g.seen.Unlock()
	g.poke()
}

// Table is the table that is in effect.
func (g *Gateway) Table() *routes.Table { return g.view.Load().table }

// Doors are the addresses at which the gateway answers, and those at which it cannot, with the reason.
func (g *Gateway) Doors() map[netip.AddrPort]error { return g.doors.list() }

func (g *Gateway) poke() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// Run answers requests until ctx ends; ready is called when it does so for the routes that existed at the start.
func (g *Gateway) Run(ctx context.Context, ready func()) error {
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer g.certs.close()
	defer g.close()
	defer stop()
	runs := []func(context.Context, func()) error{g.services.Run, g.slices.Run}
	for _, f := range g.fronts {
		runs = append(runs, f.Run)
	}
	failed, listed := make(chan error, len(runs)), make(chan struct{}, len(runs))
	for _, run := range runs {
		running.Go(func() {
			if err := run(ctx, func() { listed <- struct{}{} }); err != nil {
				failed <- err
			}
		})
	}
	for range runs {
		select {
		case <-listed:
		case err := <-failed:
			return err
		case <-ctx.Done():
			return nil
		}
	}
	g.rebuild()
	ready()
	for {
		select {
		case <-g.wake:
			g.catchUp()
		case <-g.doors.again:
			g.doors.retry()
		case err := <-failed:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// catchUp brings requests to what the informers have told until now.
func (g *Gateway) catchUp() {
	g.seen.Lock()
	all, dirty := g.seen.routes, g.seen.dirty
	g.seen.routes, g.seen.dirty, g.seen.working = false, map[backends.Name]bool{}, true
	g.seen.Unlock()
	for n := range dirty {
		g.look(n)
	}
	if all {
		g.rebuild()
	}
	g.seen.Lock()
	g.seen.working = false
	g.seen.Unlock()
}

// rebuild makes a table of what the front ends want, and the pools and listeners that it needs.
func (g *Gateway) rebuild() {
	var sets []routes.Set
	for _, f := range g.fronts {
		sets = append(sets, f.Routes()...)
	}
	v := &view{table: routes.New(sets...), pools: map[*routes.Route]*backends.Pool{}}
	byAddress := g.follow(v.table)
	ports, of := []backends.Port(nil), map[*routes.Route]backends.Port{}
	for _, r := range v.table.Routes() {
		p := backends.Port{Service: backends.Name{Namespace: r.Backend.Namespace, Name: r.Backend.Service}, Port: r.Backend.Port}
		if a := r.Backend.Address; a.IsValid() {
			if svc, ok := byAddress[a.Addr()]; ok {
				p = backends.Port{Service: svc, Port: strconv.Itoa(int(a.Port()))}
			} else {
				p = backends.Port{Address: a}
			}
		}
		of[r], ports = p, append(ports, p)
	}
	fresh := g.book.Want(ports)
	g.index(ports, fresh)
	for _, n := range fresh {
		g.look(n)
	}
	for r, p := range of {
		v.pools[r] = g.book.Pool(p)
	}
	g.view.Store(v)
	g.certs.keep(v.table)
	for _, c := range v.table.Conflicts() {
		g.cfg.Log.Debug("a path is another's already", "route", c.Route.Host+c.Route.Path, "of", c.Route.Owner.String(), "has", c.Of.Owner.String())
	}
	g.doors.want(g.wanted(v.table))
}

// wanted are the addresses and ports to listen at, and whether by TLS.
func (g *Gateway) wanted(t *routes.Table) map[netip.AddrPort]bool {
	list, own := t.Addresses()
	if own {
		g.seen.Lock()
		list = append(list, g.seen.own...)
		g.seen.Unlock()
	}
	out := map[netip.AddrPort]bool{}
	for _, a := range list {
		out[netip.AddrPortFrom(a, g.cfg.HTTP)], out[netip.AddrPortFrom(a, g.cfg.HTTPS)] = false, true
	}
	return out
}
