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

// lifeSign is how often it is looked whether a client is still there. One that has gone is mostly
// noticed at once, by reading; not so if nobody takes the input that it had sent before.
var lifeSign = 10 * time.Second

// captor remembers the connection that an upgrade takes over.
type captor struct {
	http.ResponseWriter
	conn net.Conn
}

// Hijack implements http.Hijacker.
func (c *captor) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(c.ResponseWriter).Hijack()
	c.conn = conn
	return conn, rw, err
}

// watch calls lost when the client has closed the connection, also if nobody reads what it sent before
// that: then its end is not come to by reading. A client that was killed while it had more to send than
// is taken does not even close the connection, until something is sent to it: that is what ping is for.
func watch(ctx context.Context, conn net.Conn, ping func() error, lost func()) {
	t := time.NewTicker(lifeSign)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			if hungUp(conn) || ping() != nil {
				lost()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// hungUp asks the kernel whether the other side has closed a connection.
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
