package streaming

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// checkEvery is how often a connection is checked, if nothing else is said. Most disconnects are noticed at once by a
// read, but not while input that the client sent earlier is still unread.
const checkEvery = 10 * time.Second

// Upgrader takes over the connections of requests for streams.
type Upgrader struct {
	// CheckEvery is how often it is checked that a client is still there; 0: every ten seconds.
	CheckEvery time.Duration
}

func (u Upgrader) checkEvery() time.Duration {
	if u.CheckEvery == 0 {
		return checkEvery
	}
	return u.CheckEvery
}

// hijacked remembers the connection that an upgrade takes over.
type hijacked struct {
	http.ResponseWriter
	conn net.Conn
}

// Hijack implements http.Hijacker.
func (c *hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(c.ResponseWriter).Hijack()
	c.conn = conn
	return conn, rw, err
}

// NoticeDisconnect makes an answer whose connection is watched once something takes it over, until ctx ends:
// disconnected is called when the client has closed it, also while input that the client sent earlier is unread.
func NoticeDisconnect(ctx context.Context, w http.ResponseWriter, disconnected func()) http.ResponseWriter {
	return &noticing{ResponseWriter: w, ctx: ctx, disconnected: disconnected}
}

type noticing struct {
	http.ResponseWriter
	ctx          context.Context
	disconnected func()
}

// Hijack implements http.Hijacker.
func (n *noticing) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(n.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	go watchConnection(n.ctx, checkEvery, conn, func() error { return nil }, n.disconnected) // the other end of the stream pings
	return &lingering{conn}, rw, nil
}

// lingering is a connection whose client has closeTimeout to close it once everything has been sent.
type lingering struct{ net.Conn }

// CloseWrite says that everything has been sent.
func (l *lingering) CloseWrite() error {
	time.AfterFunc(closeTimeout, func() { l.Close() })
	if half, ok := l.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Unwrap gives http.ResponseController the answer itself.
func (n *noticing) Unwrap() http.ResponseWriter { return n.ResponseWriter }

// watchConnection calls disconnected when the client has closed the connection. It notices this even while earlier
// input from the client is unread; a read would not reach the end of the connection then. If a client is killed while
// it still has input to send, its connection closes only when the server sends something, so ping sends something.
func watchConnection(ctx context.Context, every time.Duration, conn net.Conn, ping func() error, disconnected func()) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			if hungUp(conn) || ping() != nil {
				disconnected()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// hungUp asks the kernel whether the other side has closed the connection.
func hungUp(conn net.Conn) bool {
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = t.NetConn()
	}
	raw, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	rc, err := raw.SyscallConn()
	if err != nil {
		return true
	}
	over := false
	err = rc.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		if _, err := unix.Poll(fds, 0); err == nil {
			over = fds[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
		}
	})
	return over || err != nil
}
