package proxy

import (
	"io"
	"net"
	"time"
)

// AsConn makes a net.Conn of a stream to a pod. A stream from another node has no deadlines. It needs none, because
// the end of the request closes it.
func AsConn(c io.ReadWriteCloser) net.Conn {
	if conn, ok := c.(net.Conn); ok {
		return conn
	}
	return podConn{c}
}

type podConn struct{ io.ReadWriteCloser }

func (podConn) LocalAddr() net.Addr              { return podAddr{} }
func (podConn) RemoteAddr() net.Addr             { return podAddr{} }
func (podConn) SetDeadline(time.Time) error      { return nil }
func (podConn) SetReadDeadline(time.Time) error  { return nil }
func (podConn) SetWriteDeadline(time.Time) error { return nil }

type podAddr struct{}

func (podAddr) Network() string { return "pod" }
func (podAddr) String() string  { return "pod" }
