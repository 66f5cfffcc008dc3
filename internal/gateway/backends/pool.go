package backends

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"
)

// Protocol is what a Service's port says that its endpoints speak, by appProtocol.
type Protocol int

const (
	// HTTP is HTTP/1.1, or what the request asks for.
	HTTP Protocol = iota
	// H2C is HTTP/2 without TLS.
	H2C
	// HTTPS is HTTP with TLS.
	HTTPS
)

// Pool is the endpoints of one port of a Service.
type Pool struct {
	state atomic.Pointer[state]
	turn  atomic.Uint32
	// clients are those that stay with an endpoint.
	clients clients
}

type state struct {
	endpoints []*Endpoint
	protocol  Protocol
	affinity  time.Duration // for how long a client stays with an endpoint; 0: it does not
	lack      Lack
	why       string // there is none
}

// Why says, for a person, why the pool has no endpoint.
func (p *Pool) Why() string { return p.state.Load().why }

// Protocol is what the endpoints speak.
func (p *Pool) Protocol() Protocol { return p.state.Load().protocol }

// Turn is one request's way through the endpoints of a pool.
type Turn struct {
	list  []*Endpoint
	first uint32
	step  int // of two rounds: those that work, then all others
	tried uint64
}

// Turn begins a request of a client. Where its Service has affinity the client's own endpoint comes first, and the others only if
// that fails.
func (p *Pool) Turn(client netip.Addr) Turn {
	s := p.state.Load()
	if s.affinity > 0 && len(s.endpoints) > 1 && client.IsValid() {
		return Turn{list: s.endpoints, first: uint32(p.clients.of(client, s.endpoints, s.affinity))}
	}
	return Turn{list: s.endpoints, first: p.turn.Add(1) - 1}
}

// Next is the endpoint to try next: each at most once, those that failed lately last; nil: all have been tried.
func (t *Turn) Next() *Endpoint {
	n := len(t.list)
	for ; t.step < 2*n; t.step++ {
		i := int((t.first + uint32(t.step%n)) % uint32(n))
		if i < 64 && t.tried&(1<<i) != 0 {
			continue
		}
		if i >= 64 && t.step >= n { // beyond what is remembered: one round
			continue
		}
		if e := t.list[i]; t.step >= n || e.usable() {
			if i < 64 {
				t.tried |= 1 << i
			}
			t.step++
			return e
		}
	}
	return nil
}

// Empty says that there is no endpoint at all.
func (t *Turn) Empty() bool { return len(t.list) == 0 }

// Idempotent says whether a request that may have been acted upon may be sent again.
func Idempotent(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return false
}

// TimedOut says whether an endpoint has failed by not answering in time.
func TimedOut(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}
