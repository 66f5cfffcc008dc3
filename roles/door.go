package roles

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"minik8s/internal/balancer"
)

// door is a master's API port. It accepts all connections, and hands them to the API server; only what comes from this
// machine while its own API is of no use is led to another master's, as a worker's balancer does. So clients here have one
// address, whichever masters are away, and no hop more while all is well. What other machines send is never passed on: they
// have chosen this master, and two that pass on to each other would do so for ever.
//
// It is the API server's net.Listener. Connections that come before there is an API server wait, as in a listener's queue.
type door struct {
	*net.TCPListener
	others *balancer.Balancer
	// useful reports whether this machine's own API does what it is for. It may take a second.
	useful func() bool

	ctx    context.Context // ends what is accepted and led elsewhere
	queue  chan net.Conn
	closed chan struct{}
	close  func()
}

// waiting is how many connections may wait for the API server.
const waiting = 1024

func newDoor(ctx context.Context, l *net.TCPListener, others *balancer.Balancer, useful func() bool) *door {
	d := &door{TCPListener: l, others: others, useful: useful, ctx: ctx, queue: make(chan net.Conn, waiting), closed: make(chan struct{})}
	d.close = sync.OnceFunc(func() { close(d.closed) })
	return d
}

// run accepts until ctx ends or the listener is closed.
func (d *door) run() error {
	defer context.AfterFunc(d.ctx, func() {
		d.Close() //nolint:errcheck // nothing can be done
		d.others.Close()
	})()
	var leading sync.WaitGroup
	defer leading.Wait()
	for pause := minPause; ; {
		c, err := d.AcceptTCP()
		switch {
		case errors.Is(err, net.ErrClosed):
			<-d.ctx.Done() // the API server has ended, and the daemon will
			return nil
		case err != nil: // as when there are too many open files
			select {
			case <-time.After(pause):
			case <-d.ctx.Done():
			}
			pause = min(2*pause, maxPause)
			continue
		}
		pause = minPause
		if fromHere(c) && len(d.others.Upstreams()) > 0 {
			leading.Go(func() { d.lead(c) })
			continue
		}
		d.enqueue(c)
	}
}

const (
	minPause = 5 * time.Millisecond
	maxPause = time.Second
)

// fromHere reports whether a connection's client is on this machine.
func fromHere(c net.Conn) bool {
	client, ok := c.RemoteAddr().(*net.TCPAddr)
	own, ok2 := c.LocalAddr().(*net.TCPAddr)
	return ok && ok2 && (client.IP.IsLoopback() || client.IP.Equal(own.IP))
}

// lead leads a connection to the API that is of use.
func (d *door) lead(c *net.TCPConn) {
	if d.useful() {
		d.enqueue(c)
		return
	}
	d.others.Relay(d.ctx, c)
}

func (d *door) enqueue(c net.Conn) {
	select {
	case d.queue <- c:
	default:
		c.Close() //nolint:errcheck // nothing was sent
	}
}

// Accept implements net.Listener for the API server.
func (d *door) Accept() (net.Conn, error) {
	select {
	case c := <-d.queue:
		return c, nil
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (d *door) Close() error {
	d.close()
	return d.TCPListener.Close()
}
