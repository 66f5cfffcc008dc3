package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"minik8s/internal/gateway/backends"
	"minik8s/internal/gateway/pages"
)

// Limits of connections to endpoints.
const (
	dialTime  = 3 * time.Second
	reachTime = 10 * time.Second // for all dials of a request
	keepTime  = 60 * time.Second // for a connection that waits for the next request
	keepEach  = 128              // such connections to one endpoint
)

// newDialer makes what connects to endpoints: not to what listens for the node alone, and not to the gateway itself.
func (g *Gateway) newDialer() net.Dialer {
	d := net.Dialer{Timeout: dialTime, KeepAlive: 15 * time.Second, Control: func(_, address string, c syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		a := at.Addr().Unmap()
		if a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified() || a.IsMulticast() {
			return fmt.Errorf("%s is not an address of a backend", a)
		}
		if g.doors.has(netip.AddrPortFrom(a, at.Port())) {
			return fmt.Errorf("%s is the gateway's own", at)
		}
		var set error
		if err := c.Control(func(fd uintptr) { set = stallLimit(fd, g.cfg.stallTime) }); err != nil {
			return err
		}
		return set
	}}
	d.SetMultipathTCP(false)
	return d
}

var errNobody = errors.New("no endpoint has answered")

// dialError is why an endpoint could not be reached: nothing has been sent.
type dialError struct{ error }

func (e dialError) Unwrap() error { return e.error }

func (g *Gateway) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := g.dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, dialError{err}
	}
	return c, nil
}

// transports are the connections to endpoints of net/http: by HTTP/1.1, and by HTTP/2 without TLS; and both with TLS.
type transports struct{ http1, h2c, tls1, tls2 *http.Transport }

func (g *Gateway) newTransports() transports {
	make := func(http1 bool) *http.Transport {
		t := &http.Transport{DialContext: g.dial, DisableCompression: true, MaxIdleConnsPerHost: keepEach, IdleConnTimeout: keepTime,
			ExpectContinueTimeout: time.Second, MaxResponseHeaderBytes: 256 << 10, Protocols: &http.Protocols{}}
		if http1 { // the head of a stream of gRPC may come with its first message
			t.ResponseHeaderTimeout = g.cfg.answerTime
		}
		t.Protocols.SetHTTP1(http1)
		return t
	}
	secure := func(t *http.Transport) *http.Transport {
		// The endpoint is known by its address, which is the cluster's to give, and few pods have a certificate for theirs.
		t.TLSClientConfig, t.TLSHandshakeTimeout = &tls.Config{InsecureSkipVerify: true}, dialTime
		return t
	}
	out := transports{make(true), make(false), secure(make(true)), secure(make(false))}
	out.h2c.Protocols.SetUnencryptedHTTP2(true)
	out.tls2.Protocols.SetHTTP2(true)
	return out
}

func (t transports) close() {
	for _, by := range []*http.Transport{t.http1, t.h2c, t.tls1, t.tls2} {
		by.CloseIdleConnections()
	}
}

// by is the transport for a request.
func (c *call) by(r *http.Request) *http.Transport {
	one, two := c.http1, c.h2c
	if c.pool.Protocol() == backends.HTTPS {
		one, two = c.tls1, c.tls2
	}
	if r.Header.Get("Upgrade") != "" {
		return one
	}
	if c.pool.Protocol() == backends.H2C || r.ProtoMajor == 2 && isGRPC(r.Header.Get("Content-Type")) {
		return two
	}
	return one
}

// RoundTrip sends a request to the endpoints in turn until one answers.
func (c *call) RoundTrip(r *http.Request) (*http.Response, error) {
	by := c.by(r)
	var body *clientBody
	if r.Body != nil && r.Body != http.NoBody { // it is the server's to close, and may be needed for the next endpoint
		body = &clientBody{Reader: r.Body}
	}
	begin := time.Now()
	for last := error(nil); ; {
		e := c.turn.Next()
		if e == nil || last != nil && time.Since(begin) > reachTime {
			return nil, errors.Join(errNobody, last)
		}
		var reused bool
		ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { reused = i.Reused }})
		try := r.WithContext(ctx)
		try.URL = new(url.URL)
		*try.URL = *r.URL
		try.URL.Host = e.Address
		if c.pool.Protocol() == backends.HTTPS {
			try.URL.Scheme = "https"
		}
		if body != nil {
			try.Body = body
		}
		answer, err := by.RoundTrip(try)
		if err == nil {
			e.Worked()
			return answer, nil
		}
		if c.malformed = body != nil && body.broken.Load(); c.malformed || r.Context().Err() != nil {
			return nil, err
		}
		last, c.how = err, pages.Broken
		var unreached dialError
		if !errors.As(err, &unreached) {
			if backends.TimedOut(err) { // it may be at work, and the client has waited long enough
				c.how = pages.Unanswered
				if errors.Is(err, syscall.ETIMEDOUT) { // or its machine is gone: nothing was acknowledged
					e.Failed()
				}
				return nil, err
			}
			if !reused {
				e.Failed()
			}
			if body != nil || !backends.Idempotent(r.Method) {
				return nil, err
			}
			continue
		}
		if backends.TimedOut(err) {
			c.how = pages.Unreached
		}
		e.Failed()
	}
}

// clientBody is a request's body. That it is broken is not the endpoint's fault.
type clientBody struct {
	io.Reader
	broken atomic.Bool
}

func (b *clientBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && err != io.EOF {
		b.broken.Store(true)
	}
	return n, err
}

func (b *clientBody) Close() error { return nil }

// isGRPC reports whether a content type is gRPC's, which backends speak by HTTP/2 alone: with the encoding behind a + or a ;. That of
// gRPC-Web, application/grpc-web, is for HTTP/1.1 too.
func isGRPC(contentType string) bool {
	rest, is := strings.CutPrefix(contentType, "application/grpc")
	return is && (rest == "" || rest[0] == '+' || rest[0] == ';')
}
