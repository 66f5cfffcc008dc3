package idle

import (
	"context"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Pool has the connections to one server that wait for their next use. Its methods may be called at once.
type Pool struct {
	// Address is the server's, and Dial connects to it.
	Address string
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	// Most is how many connections are kept, and Time for how long.
	Most int
	Time time.Duration

	mu    sync.Mutex
	idle  []*Conn // the one that was used last is the last
	gone  bool    // the server is
	timer *time.Timer
}

// Conn is a connection to the server.
type Conn struct {
	net.Conn
	raw  syscall.RawConn
	used time.Time

	look  func(fd uintptr) bool // peek, made once
	one   [1]byte
	quiet bool
}

// Get returns a connection: one that waits, unless fresh is asked for, or a new one.
func (p *Pool) Get(ctx context.Context, fresh bool) (c *Conn, reused bool, err error) {
	if !fresh {
		p.mu.Lock()
		if n := len(p.idle); n > 0 {
			c, p.idle[n-1] = p.idle[n-1], nil
			p.idle = p.idle[:n-1]
			p.mu.Unlock()
			return c, true, nil
		}
		p.mu.Unlock()
	}
	conn, err := p.Dial(ctx, "tcp", p.Address)
	if err != nil {
		return nil, false, err
	}
	c = &Conn{Conn: conn}
	c.look = c.peek
	if s, ok := conn.(syscall.Conn); ok {
		c.raw, _ = s.SyscallConn() //nolint:errcheck // without it a connection is not used again
	}
	return c, false, nil
}

// Put keeps a connection on which the last answer has been read to its end.
func (p *Pool) Put(c *Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone || len(p.idle) >= p.Most {
		c.Close() //nolint:errcheck // nothing waits for it
		return
	}
	c.used = time.Now()
	p.idle = append(p.idle, c)
	if p.timer == nil {
		p.timer = time.AfterFunc(p.Time, p.sweep)
	}
}

// sweep ends the connections that have waited for long.
func (p *Pool) sweep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, now := 0, time.Now()
	for n < len(p.idle) && now.Sub(p.idle[n].used) >= p.Time { // the oldest are the first
		p.idle[n].Close() //nolint:errcheck // nothing waits for it
		n++
	}
	p.idle = append([]*Conn(nil), p.idle[n:]...)
	if p.timer = nil; len(p.idle) > 0 && !p.gone {
		p.timer = time.AfterFunc(p.Time-now.Sub(p.idle[0].used), p.sweep)
	}
}

// Close ends the connections that wait, and those that are used as soon as they are put back.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	for _, c := range p.idle {
		c.Close() //nolint:errcheck // nothing waits for it
	}
	p.idle = nil
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
}

// Alive says whether the connection may be used again as far as is known here: the server has neither ended it nor sent
// what nobody has asked for, which would be taken for the next answer.
func (c *Conn) Alive() bool {
	c.quiet = false
	return c.raw != nil && c.raw.Read(c.look) == nil && c.quiet
}

func (c *Conn) peek(fd uintptr) bool {
	_, _, err := unix.Recvfrom(int(fd), c.one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	c.quiet = err == unix.EAGAIN
	return true
}
