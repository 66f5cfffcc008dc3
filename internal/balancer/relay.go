package balancer

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// relay is one connection of a client, and that to its upstream.
type relay struct {
	balancer       *Balancer
	upstream       *upstream
	client, server *net.TCPConn
	began          time.Time
	answered       atomic.Bool // the upstream has sent something
	given          atomic.Bool // the client has sent all it has, or has gone
}

const (
	// firstRead is how much of an upstream's first answer is read in this process; the kernel moves the rest.
	firstRead = 1 << 10
	// answerWithin is how long an upstream that has sent nothing may go on so when the client has sent all it has: a
	// process that is stopped accepts connections, and would keep them for ever.
	answerWithin = 10 * time.Second
)

// Relay relays one connection until it ends, or ctx before it is connected; it closes the connection.
func (b *Balancer) Relay(ctx context.Context, client *net.TCPConn) {
	defer client.Close()       //nolint:errcheck // it is over
	client.SetKeepAlive(false) //nolint:errcheck // it saves work only: the kernel says when a client on this machine ends
	r, err := b.dial(ctx, client)
	if ctx.Err() == nil {
		b.reached(err)
	}
	if err != nil {
		return
	}
	defer b.leave(r)
	defer r.server.Close() //nolint:errcheck // it is over
	var up sync.WaitGroup
	up.Go(r.upload)
	r.download()
	up.Wait()
}

// close ends the connection; both goroutines end soon after.
func (r *relay) close() {
	r.client.Close() //nolint:errcheck // it is over
	r.server.Close() //nolint:errcheck // as above
}

// upload passes on what the client sends.
func (r *relay) upload() {
	n, err := io.Copy(r.server, r.client)
	r.given.Store(true)
	r.judge(err)
	if err == nil {
		err = r.server.CloseWrite()
	}
	if err != nil {
		r.close()
	}
	if n == 0 || r.answered.Load() {
		return
	}
	// A client that has gone without an answer may have given up. One that has gone at once did not wait for one.
	if time.Since(r.began) > dialTimeout {
		r.balancer.hasFailed(r.upstream)
	}
	r.server.SetReadDeadline(time.Now().Add(answerWithin)) //nolint:errcheck // it is closed
	if r.answered.Load() {                                 // meanwhile
		r.server.SetReadDeadline(time.Time{}) //nolint:errcheck // as above
	}
}

// download passes on what the upstream sends.
func (r *relay) download() {
	err := r.first()
	if err == nil {
		_, err = io.Copy(r.client, r.server)
	}
	r.judge(err)
	if err == nil || err == io.EOF {
		err = r.client.CloseWrite()
	}
	if err != nil {
		r.close()
	}
}

// first passes on the first bytes: they say that the upstream works.
func (r *relay) first() error {
	buf := make([]byte, firstRead)
	n, err := r.server.Read(buf)
	if n == 0 {
		return err
	}
	r.answered.Store(true)
	r.server.SetReadDeadline(time.Time{}) //nolint:errcheck // it is closed
	r.balancer.answered(r.upstream)
	if _, werr := r.client.Write(buf[:n]); werr != nil {
		return werr
	}
	return err
}

// judge notes what the end of one direction says of the upstream: that its network is gone, or that it accepts connections
// and ends them without a word.
func (r *relay) judge(err error) {
	if (err == io.EOF || errors.Is(err, syscall.ECONNRESET)) && !r.answered.Load() && !r.given.Load() {
		r.balancer.hasFailed(r.upstream)
	}
	if errors.Is(err, syscall.ETIMEDOUT) || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH) {
		r.balancer.hasFailed(r.upstream)
	}
}
