// Package places bounds how many connections a server has, and shares them among its clients: one client that takes all it
// can get leaves room for the others.
//
// Who calls it: servers that anybody may connect to, such as the gateway and the DNS. It knows clients by their addresses
// alone. Nothing survives.
package places

import (
	"errors"
	"net"
	"net/netip"
	"sync"
)

// Places are what clients may hold. Made by New.
type Places struct {
	total, least int
	refused      func(client netip.Addr)

	mu    sync.Mutex
	taken int
	held  map[netip.Addr]int
}

// New makes so many places in total. A client gets one more as long as it holds less than half of those that are free, or
// less than the number least: so the first client gets a third of all at most, and each further one a part of the rest.
// refused is called for each connection that gets none; nil: nobody wants to know. It must return at once.
func New(total, least int, refused func(client netip.Addr)) *Places {
	return &Places{total: total, least: least, refused: refused, held: map[netip.Addr]int{}}
}

// Take gives a client a place, if there is one for it. Whoever has it calls Leave, once.
func (p *Places) Take(client netip.Addr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	free := p.total - p.taken
	if n := p.held[client]; free == 0 || n >= max(p.least, free/2) {
		return false
	}
	p.taken++
	p.held[client]++
	return true
}

// Leave gives a place back.
func (p *Places) Leave(client netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.held[client]--; p.held[client] == 0 {
		delete(p.held, client)
	}
}

// Taken is how many places are.
func (p *Places) Taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}

// Listen gives each connection of a TCP listener a place for as long as it is open. One that gets none is reset.
func (p *Places) Listen(l net.Listener) net.Listener { return &listener{l, p} }

type listener struct {
	net.Listener
	places *Places
}

var errNotTCP = errors.New("places: not a TCP connection")

func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		t, ok := c.(*net.TCPConn)
		if !ok {
			c.Close()
			return nil, errNotTCP
		}
		client := t.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
		if l.places.Take(client) {
			return &conn{TCPConn: t, leave: sync.OnceFunc(func() { l.places.Leave(client) })}, nil
		}
		t.SetLinger(0) //nolint:errcheck // then it ends with a wait, which is no harm
		t.Close()
		if l.places.refused != nil {
			l.places.refused(client)
		}
	}
}

// conn is a connection with a place.
type conn struct {
	*net.TCPConn
	leave func()
}

func (c *conn) Close() error {
	defer c.leave()
	return c.TCPConn.Close()
}
