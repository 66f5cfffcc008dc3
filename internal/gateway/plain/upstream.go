package plain

import (
	"context"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Upstreams are the connections to one endpoint that wait for a next plain request. There is a timer only while there are
// some.
type Upstreams struct {
	address string
	cfg     *Config

	mu    sync.Mutex
	idle  []*upstream // the one that was used last is the last
	gone  bool        // the endpoint is
	timer *time.Timer
}

// upstream is one connection to an endpoint.
type upstream struct {
	net.Conn
	raw  syscall.RawConn
	used time.Time

	look  func(fd uintptr) bool // peek, made once
	one   [1]byte
	quiet bool
}

// get is a connection: one that waits, unless fresh is asked for, or a new one.
func (p *Upstreams) get(fresh bool) (u *upstream, reused bool, err error) {
	if !fresh {
		p.mu.Lock()
		if n := len(p.idle); n > 0 {
			u, p.idle[n-1] = p.idle[n-1], nil
			p.idle = p.idle[:n-1]
			p.mu.Unlock()
			return u, true, nil
		}
		p.mu.Unlock()
	}
	c, err := p.cfg.Dial(context.Background(), "tcp", p.address)
	if err != nil {
		return nil, false, err
	}
	u = &upstream{Conn: c}
	u.look = u.peek
	if t, ok := c.(*net.TCPConn); ok {
		u.raw, _ = t.SyscallConn()
	}
	return u, false, nil
}

// put keeps a connection on which the last answer has been read to its end.
func (p *Upstreams) put(u *upstream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone || len(p.idle) >= p.cfg.KeepEach {
		u.Close()
		return
	}
	u.used = time.Now()
	p.idle = append(p.idle, u)
	if p.timer == nil {
		p.timer = time.AfterFunc(p.cfg.KeepTime, p.sweep)
	}
}

// sweep ends the connections that have waited for long.
func (p *Upstreams) sweep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, now := 0, time.Now()
	for n < len(p.idle) && now.Sub(p.idle[n].used) >= p.cfg.KeepTime { // the oldest are the first
		p.idle[n].Close()
		n++
	}
	p.idle = append([]*upstream(nil), p.idle[n:]...)
	if p.timer = nil; len(p.idle) > 0 && !p.gone {
		p.timer = time.AfterFunc(p.cfg.KeepTime-now.Sub(p.idle[0].used), p.sweep)
	}
}

// Close ends those that wait, and those that are used as soon as they are put back.
func (p *Upstreams) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	for _, u := range p.idle {
		u.Close()
	}
	p.idle = nil
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
}

// alive says whether the connection may be used again as far as is known here: the endpoint has neither ended it nor sent
// what nobody has asked for, which would be taken for the next answer.
func (u *upstream) alive() bool {
	u.quiet = false
	return u.raw != nil && u.raw.Read(u.look) == nil && u.quiet
}

func (u *upstream) peek(fd uintptr) bool {
	_, _, err := unix.Recvfrom(int(fd), u.one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	u.quiet = err == unix.EAGAIN
	return true
}
