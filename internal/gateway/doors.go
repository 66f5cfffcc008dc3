package gateway

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"minik8s/internal/places"
)

// doors are the listeners. One that cannot listen, because another process has the port, is tried again with pauses that
// grow: there is a timer only while that is so.
type doors struct {
	g     *Gateway
	again chan struct{}

	mu     sync.Mutex
	wanted map[netip.AddrPort]bool // whether by TLS
	open   map[netip.AddrPort]net.Listener
	failed map[netip.AddrPort]error
	pause  time.Duration
	timer  *time.Timer

	closing bool
	conns   map[net.Conn]struct{} // that the server of net/http does not have
	places  *places.Places        // of all connections
	serving sync.WaitGroup        // listeners
	running sync.WaitGroup        // connections
}

// How long until a port that another has is tried again.
const (
	minPause = time.Second
	maxPause = time.Minute
)

func newDoors(g *Gateway) *doors {
	return &doors{g: g, again: make(chan struct{}, 1), open: map[netip.AddrPort]net.Listener{}, failed: map[netip.AddrPort]error{}, conns: map[net.Conn]struct{}{},
		places: places.New(maxConns, minConns, refused(g.cfg.Log))}
}

// want opens and closes listeners. The connections of one that closes go on.
func (d *doors) want(wanted map[netip.AddrPort]bool) {
	d.mu.Lock()
	if !maps.Equal(d.wanted, wanted) {
		d.wanted, d.pause = wanted, 0
	}
	for at, l := range d.open {
		if _, ok := wanted[at]; !ok {
			l.Close()
			delete(d.open, at)
		}
	}
	d.mu.Unlock()
	d.retry()
}

// retry opens those listeners that are not open.
func (d *doors) retry() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing {
		return
	}
	before := d.failed
	d.failed = map[netip.AddrPort]error{}
	for at, secure := range d.wanted {
		if d.open[at] != nil {
			continue
		}
		l, err := d.listen(at)
		if err != nil {
			if before[at] == nil {
				d.g.cfg.Log.Warn("the gateway cannot listen, trying again", "address", at, "error", err)
			}
			d.failed[at] = err
			continue
		}
		d.open[at] = l
		d.serving.Go(func() { d.accept(l, secure) })
	}
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if len(d.failed) > 0 {
		d.pause = min(max(2*d.pause, minPause), maxPause)
		d.timer = time.AfterFunc(d.pause, func() {
			select {
			case d.again <- struct{}{}:
			default:
			}
		})
	}
	if d.g.cfg.Opened != nil {
		d.g.cfg.Opened()
	}
}

// refused logs, once a minute at most, that a client has more connections than it may.
func refused(log *slog.Logger) func(netip.Addr) {
	var last atomic.Int64
	return func(client netip.Addr) {
		now := time.Now().Unix()
		if was := last.Load(); now-was >= 60 && last.CompareAndSwap(was, now) {
			log.Warn("the gateway refuses connections of a client that has many, or has no place left", "client", client)
		}
	}
}

// listen listens also at an address that the node does not have yet. Whoever takes nothing of what was sent, for a while,
// is cut off: the option goes from the listener to its connections.
func (d *doors) listen(at netip.AddrPort) (net.Listener, error) {
	lc := net.ListenConfig{KeepAlive: 15 * time.Second, Control: func(_, _ string, c syscall.RawConn) (err error) {
		if cerr := c.Control(func(fd uintptr) {
			if err = stallLimit(fd, d.g.cfg.stallTime); err != nil {
				return
			}
			if at.Addr().Is4() {
				err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_FREEBIND, 1)
			} else {
				err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1)
			}
		}); cerr != nil {
			return cerr
		}
		return err
	}}
	lc.SetMultipathTCP(false) // costs each connection a try
	l, err := lc.Listen(context.Background(), "tcp", at.String())
	if err != nil {
		return nil, err
	}
	return d.places.Listen(l), nil
}

// stallLimit bounds how long the other end of a connection may take nothing of what it is sent.
func stallLimit(fd uintptr, after time.Duration) error {
	return unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(after.Milliseconds()))
}

// accept serves a listener's connections until it is closed.
func (d *doors) accept(l net.Listener, secure bool) {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of file descriptors, for example
			time.Sleep(50 * time.Millisecond)
			continue
		}
		if d.enter(c) {
			go func() {
				defer d.leave(c)
				d.g.serve(c, secure)
			}()
		}
	}
}

func (d *doors) enter(c net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing {
		c.Close()
		return false
	}
	d.conns[c] = struct{}{}
	d.running.Add(1)
	return true
}

func (d *doors) leave(c net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.conns, c)
	d.running.Done()
}

func (d *doors) list() map[netip.AddrPort]error {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := maps.Clone(d.failed)
	for at := range d.open {
		out[at] = nil
	}
	return out
}

// has says whether the gateway listens there.
func (d *doors) has(at netip.AddrPort) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open[at] != nil
}

// close ends all listeners, and what waits for a next request.
func (d *doors) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closing = true
	if d.timer != nil {
		d.timer.Stop()
	}
	for at, l := range d.open {
		l.Close()
		delete(d.open, at)
	}
	for c := range d.conns {
		_ = c.SetReadDeadline(time.Unix(1, 0))
	}
}

// drain waits for the connections that are left, and ends them when ctx does.
func (d *doors) drain(ctx context.Context) {
	left := make(chan struct{})
	go func() {
		d.running.Wait()
		close(left)
	}()
	select {
	case <-left:
	case <-ctx.Done():
		d.mu.Lock()
		for c := range d.conns {
			c.Close()
		}
		d.mu.Unlock()
		<-left
	}
}
