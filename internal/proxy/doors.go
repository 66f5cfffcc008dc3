package proxy

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/proxy/plan"
	"minik8s/internal/relay"
)

// doors are the sockets that the proxy itself has: node ports on loopback, and the ports at which load balancers ask for a
// Service's health. They end with the daemon. One whose port another program has is tried again until it is free.
type doors struct {
	log *slog.Logger

	mu     sync.Mutex
	relays map[string]*loopbackPort // by key of called
	health map[types.NamespacedName]*healthPort
	later  *time.Timer // to try again; nil: all are open
	closed bool
}

func newDoors(log *slog.Logger) *doors {
	return &doors{log: log, relays: map[string]*loopbackPort{}, health: map[types.NamespacedName]*healthPort{}}
}

// loopbackPort forwards a node port on 127.0.0.1, to the endpoints in turn. All its clients have the same address, so with
// affinity they have the same endpoint.
type loopbackPort struct {
	protocol byte
	port     uint16
	relay    *relay.Relay // nil: the port is not to be had
	owner    types.NamespacedName

	mu     sync.Mutex
	list   []netip.AddrPort
	sticky bool
	turn   int
}

func (l *loopbackPort) next() (netip.AddrPort, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.list) == 0 {
		return netip.AddrPort{}, false
	}
	at := l.list[l.turn%len(l.list)]
	if !l.sticky {
		l.turn = (l.turn + 1) % len(l.list)
	}
	return at, true
}

func (l *loopbackPort) set(p plan.Port) {
	l.mu.Lock()
	l.list, l.sticky = p.Endpoints, p.Affinity > 0
	l.mu.Unlock()
	if l.relay != nil {
		l.relay.Keep(func(at netip.AddrPort) bool { return slices.Contains(p.Endpoints, at) })
	}
}

// relayed reports whether a port is a node port that can be forwarded on loopback: SCTP cannot.
func relayed(p plan.Port) bool { return p.NodePort != 0 && p.Protocol != unix.IPPROTO_SCTP }

// follow opens and closes what Services want.
func (d *doors) follow(updates map[types.NamespacedName]*entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	wanted := map[string]bool{}
	for _, e := range updates {
		if e == nil {
			continue
		}
		for _, p := range e.plan.Ports {
			if relayed(p) {
				wanted[string(portKey(p.Protocol, p.NodePort))] = true
			}
		}
	}
	for key, l := range d.relays { // before others open the same port
		if _, ok := updates[l.owner]; ok && !wanted[key] {
			l.close()
			delete(d.relays, key)
		}
	}
	for name, e := range updates {
		var s plan.Service
		if e != nil {
			s = e.plan
		}
		for _, p := range s.Ports {
			if relayed(p) {
				d.forward(name, p)
			}
		}
		d.answer(name, s)
	}
	d.tryLater()
}

// tryLater has what is not open tried again. The caller holds mu.
func (d *doors) tryLater() {
	missing := false
	for _, l := range d.relays {
		missing = missing || l.relay == nil
	}
	for _, h := range d.health {
		missing = missing || h.server == nil
	}
	if missing && d.later == nil && !d.closed {
		d.later = time.AfterFunc(again, d.tryAgain)
	}
}

func (d *doors) tryAgain() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.later = nil
	if d.closed {
		return
	}
	for _, l := range d.relays {
		if l.relay == nil && l.open(d.log) == nil {
			d.log.Info("a node port is forwarded on loopback now", "service", l.owner.String(), "port", l.port)
		}
	}
	for _, h := range d.health {
		if h.server == nil && h.open() == nil {
			d.log.Info("load balancers can ask for a service's health now", "service", h.service.String(), "port", h.port)
		}
	}
	d.tryLater()
}

func (l *loopbackPort) open(log *slog.Logger) error {
	r, err := relay.Listen(l.protocol, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), l.port), l.next, log)
	if err == nil {
		l.relay = r
	}
	return err
}

func (l *loopbackPort) close() {
	if l.relay != nil {
		l.relay.Close()
	}
}

func (d *doors) forward(name types.NamespacedName, p plan.Port) {
	key := string(portKey(p.Protocol, p.NodePort))
	l := d.relays[key]
	if l == nil {
		l = &loopbackPort{protocol: p.Protocol, port: p.NodePort}
		if err := l.open(d.log); err != nil {
			d.log.Warn("a node port is not forwarded on loopback, trying again", "service", name.String(), "port", p.NodePort, "error", err)
		}
		d.relays[key] = l
	}
	l.owner = name
	l.set(p)
}

// healthPort tells load balancers how many endpoints of a Service are on this node.
type healthPort struct {
	service types.NamespacedName
	port    uint16
	server  *http.Server // nil: the port is not to be had

	mu    sync.Mutex
	local int
}

// ServeHTTP answers as kube-proxy does.
func (h *healthPort) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h.mu.Lock()
	n := h.local
	h.mu.Unlock()
	var answer struct {
		Service struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"service"`
		LocalEndpoints      int  `json:"localEndpoints"`
		ServiceProxyHealthy bool `json:"serviceProxyHealthy"`
	}
	answer.Service.Namespace, answer.Service.Name = h.service.Namespace, h.service.Name
	answer.LocalEndpoints, answer.ServiceProxyHealthy = n, true
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("X-Load-Balancing-Endpoint-Weight", strconv.Itoa(n))
	if n == 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	json.NewEncoder(w).Encode(answer) //nolint:errcheck // the client may have gone
}

func (d *doors) answer(name types.NamespacedName, s plan.Service) {
	h := d.health[name]
	if h != nil && h.port != s.HealthPort {
		h.close()
		delete(d.health, name)
		h = nil
	}
	if s.HealthPort == 0 {
		return
	}
	if h == nil {
		h = &healthPort{service: name, port: s.HealthPort}
		if err := h.open(); err != nil {
			d.log.Warn("load balancers cannot ask for a service's health, trying again", "service", name.String(), "port", s.HealthPort, "error", err)
		}
		d.health[name] = h
	}
	h.mu.Lock()
	h.local = s.Local
	h.mu.Unlock()
}

func (h *healthPort) open() error {
	l, err := net.Listen("tcp4", fmt.Sprintf(":%d", h.port))
	if err != nil {
		return err
	}
	h.server = &http.Server{Handler: h, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 13}
	go h.server.Serve(l) //nolint:errcheck // it ends when it is closed
	return nil
}

func (h *healthPort) close() {
	if h.server != nil {
		h.server.Close() //nolint:errcheck // it ends all the same
	}
}

// close ends all of them.
func (d *doors) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.relays {
		l.close()
	}
	for _, h := range d.health {
		h.close()
	}
	clear(d.relays)
	clear(d.health)
	if d.closed = true; d.later != nil {
		d.later.Stop()
	}
}
