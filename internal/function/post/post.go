package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/sys/unix"
)

const (
	// maxHead is how long the head of an answer may be, in bytes.
	maxHead = 64 << 10
	// atOnce is the longest body that is written before the answer is read: a socket takes as much although nobody reads. While a longer
	// one is written, the answer may come already.
	atOnce = 16 << 10
	// maxInterim is how many interim answers (1xx) may come before the real one.
	maxInterim = 8
)

// Client sends requests to one server. Its methods may be called at once.
type Client struct {
	// Dial makes a connection.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// MostIdle is how many connections are kept for later requests.
	MostIdle int
	// IdleTime is for how long they are.
	IdleTime time.Duration

	mu       sync.Mutex
	idle     []idleConn // the one that was used last is the last
	pruning  bool       // a timer is set
	previous string     // the address of the idle ones
}

type idleConn struct {
	net.Conn
	since time.Time
}

// Header is a request's header field.
type Header struct{ Name, Value string }

// Progress is how far a request has come.
type Progress int

// Impossible: no server would get it, for it cannot be sent. Unsent: nothing of it was written. Sent: something of it may have been.
const (
	Impossible Progress = iota
	Unsent
	Sent
)

// Post sends a request to an address (host:port) and passes the answer to read, which reads its body and whose error Post returns. The
// request, and read, end with ctx at the latest.
func (c *Client) Post(ctx context.Context, address string, headers []Header, body []byte, read func(*http.Response) error) (Progress, error) {
	request, err := head(address, headers, len(body))
	if err != nil {
		return Impossible, err
	}
	conn, err := c.take(ctx, address)
	if err != nil {
		return Unsent, err
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) }) //nolint:errcheck // a connection that is closed ends anyway
	if ctx.Err() != nil {
		stop()
		conn.Close() //nolint:errcheck // nothing was sent
		return Unsent, ctx.Err()
	}
	again, err := exchange(conn, request, body, read)
	if stop() && again && err == nil {
		c.put(conn, address)
	} else {
		conn.Close() //nolint:errcheck // what counts was read, or err
	}
	return Sent, err
}

// head is the head of a request.
func head(address string, headers []Header, length int) ([]byte, error) {
	b := make([]byte, 0, 512)
	b = append(append(append(b, "POST / HTTP/1.1\r\nHost: "...), address...), "\r\nUser-Agent: minik8s\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(length), 10)
	for _, h := range headers {
		if !httpguts.ValidHeaderFieldName(h.Name) || !httpguts.ValidHeaderFieldValue(h.Value) {
			return nil, fmt.Errorf("%s: %q cannot be sent as a header", h.Name, h.Value)
		}
		b = append(append(append(append(b, "\r\n"...), h.Name...), ": "...), h.Value...)
	}
	return append(b, "\r\n\r\n"...), nil
}

// readers are for answers that are being read.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 4<<10) }}

// exchange writes a request and reads its answer. again: the connection may be used for another one.
func exchange(conn net.Conn, request, body []byte, read func(*http.Response) error) (again bool, err error) {
	written := make(chan error, 1)
	if len(body) <= atOnce {
		_, err := conn.Write(append(request, body...))
		written <- err
	} else {
		go func() {
			parts := net.Buffers{request, body}
			_, err := parts.WriteTo(conn)
			written <- err
		}()
	}
	limited := &io.LimitedReader{R: conn, N: maxHead}
	r := readers.Get().(*bufio.Reader)
	r.Reset(limited)
	defer func() {
		r.Reset(nil)
		readers.Put(r)
	}()
	resp, err := answer(r)
	if err != nil {
		if limited.N <= 0 {
			return false, fmt.Errorf("the head of the answer has more than %d bytes", maxHead)
		}
		select {
		case failed := <-written: // why there is no answer, if it could not be written
			if failed != nil {
				err = failed
			}
		default:
		}
		return false, err
	}
	limited.N = 1 << 62
	all := &whole{ReadCloser: resp.Body}
	resp.Body = all
	if err := read(resp); err != nil {
		return false, err
	}
	select {
	case failed := <-written:
		return failed == nil && all.read && !resp.Close && resp.StatusCode >= 200 && r.Buffered() == 0, nil
	default:
		return false, nil // it answered before it had read all
	}
}

// whole is a body that knows whether all of it was read.
type whole struct {
	io.ReadCloser
	read bool
}

func (w *whole) Read(b []byte) (int, error) {
	n, err := w.ReadCloser.Read(b)
	w.read = w.read || errors.Is(err, io.EOF)
	return n, err
}

// answer reads the head of an answer, after interim ones.
func answer(r *bufio.Reader) (*http.Response, error) {
	for range maxInterim {
		resp, err := http.ReadResponse(r, nil)
		if errors.Is(err, io.EOF) {
			return nil, io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
		if resp.StatusCode == http.StatusSwitchingProtocols || resp.StatusCode >= 200 || resp.StatusCode < 100 {
			return resp, nil
		}
	}
	return nil, fmt.Errorf("more than %d interim answers", maxInterim)
}

// take returns a connection that waits for a request, or a new one.
func (c *Client) take(ctx context.Context, address string) (net.Conn, error) {
	for {
		c.mu.Lock()
		n := len(c.idle)
		if n == 0 || c.previous != address {
			c.mu.Unlock()
			return c.Dial(ctx, address)
		}
		conn := c.idle[n-1].Conn
		c.idle[n-1] = idleConn{}
		c.idle = c.idle[:n-1]
		c.mu.Unlock()
		if quiet(conn) {
			return conn, nil
		}
		conn.Close() //nolint:errcheck // the server has closed it
	}
}

// quiet reports whether nothing has come on a connection, not even its end.
func quiet(conn net.Conn) bool {
	s, ok := conn.(syscall.Conn)
	if !ok {
		return true
	}
	rc, err := s.SyscallConn()
	if err != nil {
		return false
	}
	nothing := false
	err = rc.Control(func(fd uintptr) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN | unix.POLLRDHUP}}, 0)
		nothing = n == 0 && err == nil
	})
	return nothing && err == nil
}

// put keeps a connection for a later request.
func (c *Client) put(conn net.Conn, address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.previous != address {
		c.closeIdle(len(c.idle))
		c.previous = address
	}
	if len(c.idle) >= c.MostIdle {
		conn.Close() //nolint:errcheck // its answer was read
		return
	}
	c.idle = append(c.idle, idleConn{conn, time.Now()})
	if !c.pruning {
		c.pruning = true
		time.AfterFunc(c.IdleTime, c.prune)
	}
}

// prune closes connections that have been idle for long.
func (c *Client) prune() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, old := time.Now(), 0
	for old < len(c.idle) && now.Sub(c.idle[old].since) >= c.IdleTime {
		old++
	}
	c.closeIdle(old)
	if c.pruning = len(c.idle) > 0; c.pruning {
		time.AfterFunc(c.IdleTime-now.Sub(c.idle[0].since), c.prune)
	}
}

// closeIdle closes the n idle connections that were used longest ago; mu is held.
func (c *Client) closeIdle(n int) {
	for _, old := range c.idle[:n] {
		old.Close() //nolint:errcheck // no request has it
	}
	c.idle = append(c.idle[:0], c.idle[n:]...)
	clear(c.idle[len(c.idle):cap(c.idle)])
}

// CloseIdle closes the connections that no request has.
func (c *Client) CloseIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeIdle(len(c.idle))
}
