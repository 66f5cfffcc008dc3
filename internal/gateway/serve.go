package gateway

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"minik8s/internal/gateway/backends"
	"minik8s/internal/gateway/pages"
	"minik8s/internal/gateway/plain"
	"minik8s/internal/gateway/routes"
)

// Limits of a connection. Bodies have none, as long as something moves.
const (
	headTime   = 15 * time.Second // for a request's head, and for a TLS handshake
	idleTime   = 75 * time.Second // between requests
	headSize   = 64 << 10
	stopTime   = time.Second // what requests have when the gateway stops
	maxStreams = 128         // of one HTTP/2 connection
	stallTime  = time.Minute // for the other end to take something of what it is sent
	answerTime = time.Minute // for an endpoint to begin its answer

	// maxConns are the connections of all clients at a time, and minConns what one gets while there are some left. An idle
	// one costs some 20 KiB.
	maxConns = 4096
	minConns = 16
)

// newServer makes the server for connections that are handed to it one by one.
func (g *Gateway) newServer() *http.Server {
	s := &http.Server{Handler: g, ReadHeaderTimeout: g.cfg.headTime, IdleTimeout: idleTime, MaxHeaderBytes: headSize,
		ErrorLog: slog.NewLogLogger(g.cfg.Log.Handler(), slog.LevelDebug), TLSConfig: g.tlsConfig(),
		HTTP2:     &http.HTTP2Config{MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerConnection: 1 << 20, MaxReceiveBufferPerStream: 256 << 10},
		Protocols: &http.Protocols{},
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, secureKey{}, isTLS(c))
		},
	}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetHTTP2(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	return s
}

// loopHeader names the gateways that a request has come through, at most maxHops.
const (
	loopHeader = "Cdn-Loop"
	maxHops    = 4
)

type secureKey struct{}

// serve serves a connection to its end, or hands it on.
func (g *Gateway) serve(c net.Conn, secure bool) {
	if secure {
		t := tls.Server(c, g.server.TLSConfig)
		_ = c.SetDeadline(time.Now().Add(g.cfg.headTime))
		if t.HandshakeContext(context.Background()) != nil {
			c.Close()
			return
		}
		_ = c.SetDeadline(time.Time{})
		if c = t; t.ConnectionState().NegotiatedProtocol == "h2" {
			g.hand(c)
			return
		}
	}
	g.plain.Serve(c, secure)
}

// hand gives a connection to the server of net/http, for good.
func (g *Gateway) hand(c net.Conn) {
	if g.server.Serve(&once{conn: c}) == http.ErrServerClosed {
		c.Close()
	}
}

// once is a listener with one connection.
type once struct{ conn net.Conn }

func (o *once) Accept() (net.Conn, error) {
	if c := o.conn; c != nil {
		o.conn = nil
		return c, nil
	}
	return nil, io.EOF
}
func (o *once) Close() error   { return nil }
func (o *once) Addr() net.Addr { return &net.TCPAddr{} }

// close ends the listeners at once, and requests after a moment.
func (g *Gateway) close() {
	g.plain.Stop()
	g.doors.close()
	ctx, stop := context.WithTimeout(context.Background(), stopTime)
	defer stop()
	if g.server.Shutdown(ctx) != nil {
		g.server.Close()
	}
	g.doors.drain(ctx)
	g.doors.serving.Wait()
	g.transport.close()
	g.book.Want(nil)
}

func localAddr(c net.Conn) netip.Addr { return addrOf(c.LocalAddr()) }

func addrOf(a net.Addr) netip.Addr {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// ServeHTTP answers one request: it goes the way of its route.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v := g.view.Load()
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	at, host := addrOf(local), routes.Hostname(r.Host)
	escaped, decoded, ok := routes.Canonical(r.URL.EscapedPath())
	if !ok || r.Method == http.MethodConnect {
		pages.New(http.StatusBadRequest, "The path of the request cannot be read.").Write(w, r)
		return
	}
	if strings.Count(strings.Join(r.Header[loopHeader], ","), plain.LoopID) >= maxHops {
		pages.New(http.StatusLoopDetected, fmt.Sprintf("The request has come through %d gateways of this cluster: one leads to another in a circle.", maxHops)).Write(w, r)
		return
	}
	route := v.table.Find(at, host, decoded)
	if route == nil {
		pages.NoRoute(v.table, at, host, decoded).Write(w, r)
		return
	}
	pool := v.pools[route]
	call := &call{transports: &g.transport, pool: pool, turn: pool.Turn(remoteAddr(r))}
	if call.turn.Empty() {
		pages.NoEndpoint(route, pool.Why()).Write(w, r)
		return
	}
	if strings.Contains(strings.ToLower(r.Header.Get("Upgrade")), "h2c") { // requests inside it would have no route
		r.Header.Del("Upgrade")
		r.Header.Del("Http2-Settings")
		r.Header.Del("Connection")
	}
	secure, _ := r.Context().Value(secureKey{}).(bool)
	if r.ProtoMajor == 1 && r.Body != nil && r.Body != http.NoBody {
		_ = http.NewResponseController(w).EnableFullDuplex() // an answer may begin before the body has been read
	}
	proxy := httputil.ReverseProxy{Transport: call, BufferPool: plain.Buffers{}, FlushInterval: -1, ErrorLog: g.server.ErrorLog,
		Rewrite: func(p *httputil.ProxyRequest) { rewrite(p, route, escaped, secure) },
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil {
				panic(http.ErrAbortHandler) // the client has gone
			}
			if call.malformed {
				pages.New(http.StatusBadRequest, "The body of the request is malformed.").Write(w, r)
				return
			}
			g.cfg.Log.Debug("no endpoint has answered a request", "backend", route.Backend.String(), "error", err)
			pages.AllFailed(route, call.how).Write(w, r)
		},
	}
	proxy.ServeHTTP(w, r)
}

// remoteAddr is the address of the client's end of the connection.
func remoteAddr(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}

// rewrite makes of what the client asks what the backend sees. What the client says of who it is has been removed.
func rewrite(p *httputil.ProxyRequest, route *routes.Route, escaped string, secure bool) {
	prefix, rest := route.Split(escaped)
	u := p.Out.URL
	u.Scheme, u.Host, u.Opaque = "http", p.In.Host, ""
	u.Path, u.RawPath = rest, rest
	if decoded, err := url.PathUnescape(rest); err == nil {
		u.Path = decoded
	}
	u.RawQuery, u.ForceQuery = p.In.URL.RawQuery, p.In.URL.ForceQuery
	h, client := p.Out.Header, p.In.RemoteAddr
	if ap, err := netip.ParseAddrPort(client); err == nil {
		client = ap.Addr().Unmap().String()
	}
	proto := "http"
	if secure {
		proto = "https"
	}
	for name := range h {
		// Many programs behind take an underscore for a dash.
		if dashed := strings.ToLower(strings.ReplaceAll(name, "_", "-")); strings.HasPrefix(dashed, "x-forwarded-") || dashed == "x-real-ip" {
			delete(h, name)
		}
	}
	h.Del("Forwarded")
	h.Set("X-Forwarded-For", client)
	h.Set("X-Forwarded-Host", p.In.Host)
	h.Set("X-Forwarded-Proto", proto)
	h.Set("X-Real-Ip", client)
	h.Set(loopHeader, strings.Join(append(h[loopHeader], plain.LoopID), ", "))
	if prefix != "" {
		h.Set("X-Forwarded-Prefix", prefix)
	}
}

var _ http.RoundTripper = (*call)(nil)

// call is one request on its way through a pool.
type call struct {
	*transports
	pool *backends.Pool
	turn backends.Turn
	how  pages.Failure // of the last one

	malformed bool // the request's body is
}
