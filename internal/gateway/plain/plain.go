package plain

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"minik8s/internal/gateway/backends"
	"minik8s/internal/gateway/pages"
	"minik8s/internal/gateway/routes"
	"minik8s/internal/gateway/wire"
	"minik8s/internal/idle"
)

// LoopID is how gateways name themselves in CDN-Loop, the header by which RFC 8586 finds requests that go in circles. A
// request that has the header already is not plain.
const LoopID = "minik8s"

const (
	plainSize = 8 << 10                // what of a client is read ahead: a plain request fits with its body
	bodyWait  = time.Second            // for a small body that comes after its head
	watchWait = 100 * time.Millisecond // until somebody looks whether a client that waits has gone
)

// client is a connection of which the requests are plain until now.
type client struct {
	s      *Server
	conn   net.Conn
	in     []byte // in[from:to] has been read and not been used
	from   int
	to     int
	local  netip.Addr
	remote string
	proto  string
	req    wire.Request
	answer wire.Answer
	chunks wire.Chunks
	watch  watch
}

var plainPool = sync.Pool{New: func() any { return new([plainSize]byte) }}

// Serve serves plain requests until the connection ends, or hands it on with the first that is not. secure says that the
// connection is one by TLS.
func (s *Server) Serve(conn net.Conn, secure bool) {
	buf := plainPool.Get().(*[plainSize]byte)
	c := &client{s: s, conn: conn, in: buf[:], local: addrOf(conn.LocalAddr()), remote: addrOf(conn.RemoteAddr()).String(), proto: "http"}
	if secure {
		c.proto = "https"
	}
	c.watch.init(c)
	defer func() {
		if p := recover(); p != nil {
			s.cfg.Log.Error("a request has made the gateway panic", "panic", p)
			conn.Close()
		}
	}()
	hand := false
	for first := true; ; first = false {
		var ok bool
		if ok, hand = c.next(first); !ok {
			break
		}
	}
	if !hand {
		conn.Close()
		plainPool.Put(buf)
		return
	}
	read := append([]byte(nil), c.in[c.from:c.to]...)
	plainPool.Put(buf)
	_ = conn.SetReadDeadline(time.Time{})
	s.cfg.Hand(&handed{Conn: conn, read: read})
}

func addrOf(a net.Addr) netip.Addr {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// next serves one request. hand says that the connection is not for us any more.
func (c *client) next(first bool) (ok, hand bool) {
	if c.from == c.to {
		c.from, c.to = 0, 0
		wait := c.s.cfg.IdleTime
		if first {
			wait = c.s.cfg.HeadTime
		}
		if !c.read(wait) {
			return false, false
		}
	}
	for more := false; ; more = true {
		verdict := c.req.Read(c.in[c.from:c.to])
		switch verdict {
		case wire.Plain:
		case wire.More:
			if c.full() {
				return false, true
			}
			if !c.room(more) {
				return false, false
			}
			continue
		case wire.Ambiguous:
			c.say(pages.New(http.StatusBadRequest, "The request has both Content-Length and Transfer-Encoding."), false, true)
			return false, false
		default:
			return false, true
		}
		break
	}
	size := c.req.Size + max(c.req.Length, 0)
	if size > len(c.in) {
		return false, true
	}
	for c.to-c.from < size {
		c.compact()
		if !c.read(bodyWait) {
			return false, !c.s.stopping.Load() // who gets it has more patience
		}
	}
	return c.forward(size)
}

func (c *client) full() bool { return c.to-c.from == len(c.in) }

// room reads more of a head. The time for it begins with the first byte.
func (c *client) room(timed bool) bool {
	c.compact()
	if timed {
		return c.readNow()
	}
	return c.read(c.s.cfg.HeadTime)
}

// compact moves what has not been used to the front.
func (c *client) compact() {
	if c.from > 0 {
		c.to = copy(c.in, c.in[c.from:c.to])
		c.from = 0
	}
}

// read reads more within a time.
func (c *client) read(within time.Duration) bool {
	_ = c.conn.SetReadDeadline(time.Now().Add(within))
	return c.readNow()
}

func (c *client) readNow() bool {
	if c.s.stopping.Load() { // it sets a deadline of its own, which may have come before ours
		return false
	}
	n, err := c.conn.Read(c.in[c.to:])
	c.to += n
	return n > 0 && err == nil || n > 0
}

// text is a part of the buffer as a string, for as long as that does not change.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// scratch is what one exchange needs beside the client's buffer.
type scratch struct{ out, in []byte }

var scratchPool = sync.Pool{New: func() any { return &scratch{out: make([]byte, 0, plainSize), in: make([]byte, plainSize)} }}

// Scratch that has grown beyond this is not kept.
const keepScratch = 64 << 10

// forward sends the request of size bytes at the front of the buffer to its backend, and the answer back.
func (c *client) forward(size int) (ok, hand bool) {
	b := c.in[c.from : c.from+size]
	path := text(c.req.Path.Of(b))
	route, pool := c.s.cfg.Find(c.local, routes.Hostname(text(c.req.Host.Of(b))), path)
	if route == nil {
		return false, true
	}
	turn := pool.Turn(addrOf(c.conn.RemoteAddr()))
	if turn.Empty() || pool.Protocol() != backends.HTTP {
		return false, true
	}
	s := scratchPool.Get().(*scratch)
	defer func() {
		if cap(s.out) <= keepScratch && cap(s.in) <= keepScratch {
			s.in = s.in[:cap(s.in)]
			scratchPool.Put(s)
		}
	}()
	s.out = c.request(s.out[:0], b, route, path)
	method := methodOf(c.req.Method.Of(b))
	c.from += size
	if c.from == c.to {
		c.from, c.to = 0, 0
	}
	u, e, how := c.ask(s, &turn, method)
	if u == nil {
		if c.watch.left {
			return false, false
		}
		return c.say(pages.AllFailed(route, how), method == http.MethodHead, c.req.Close) && !c.req.Close, false
	}
	keep, ok := c.relay(s, u, method == http.MethodHead)
	c.watch.end()
	if keep && !c.watch.left {
		e.Kept.(*idle.Pool).Put(u)
	} else {
		u.Close()
	}
	return ok && !c.req.Close && !c.watch.left, false
}

// methodOf is a method as a string that stays.
func methodOf(b []byte) string {
	switch string(b) {
	case "GET":
		return http.MethodGet
	case "POST":
		return http.MethodPost
	case "HEAD":
		return http.MethodHead
	}
	return string(b)
}

// request writes what the backend is asked.
func (c *client) request(out, b []byte, route *routes.Route, path string) []byte {
	prefix, rest := route.Split(path)
	out = append(append(append(out, c.req.Method.Of(b)...), ' '), rest...)
	out = append(append(out, c.req.Query.Of(b)...), " HTTP/1.1\r\nHost: "...)
	out = append(out, c.req.Host.Of(b)...)
	out = append(out, "\r\n"...)
	for _, l := range c.req.Lines[:c.req.N] {
		out = append(out, l.Of(b)...)
	}
	out = append(append(out, "X-Forwarded-For: "...), c.remote...)
	out = append(append(out, "\r\nX-Forwarded-Host: "...), c.req.Host.Of(b)...)
	out = append(append(out, "\r\nX-Forwarded-Proto: "...), c.proto...)
	out = append(append(out, "\r\nX-Real-Ip: "...), c.remote...)
	out = append(out, "\r\nCdn-Loop: "+LoopID...)
	if prefix != "" {
		out = append(append(out, "\r\nX-Forwarded-Prefix: "...), prefix...)
	}
	if c.req.Length >= 0 {
		out = strconv.AppendInt(append(out, "\r\nContent-Length: "...), int64(c.req.Length), 10)
	}
	out = append(out, "\r\n\r\n"...)
	return append(out, b[c.req.Size:]...)
}

// say answers with a page.
func (c *client) say(p pages.Page, head, end bool) bool {
	accept := ""
	if c.req.HTML {
		accept = "text/html"
	}
	kind, body := p.Body(accept)
	out := fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\nDate: %s\r\n",
		p.Status, http.StatusText(p.Status), kind, len(body), time.Now().UTC().Format(http.TimeFormat))
	if end {
		out = append(out, "Connection: close\r\n"...)
	}
	out = append(out, "\r\n"...)
	if !head {
		out = append(out, body...)
	}
	_, err := c.conn.Write(out)
	return err == nil
}
