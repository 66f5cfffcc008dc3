package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/streaming"
)

// How long the other side may take to accept a connection and to agree on TLS. The time for its answer is not limited, as
// in Kubernetes: the client may be waiting for something to happen.
const (
	dialTimeout = 30 * time.Second
	tlsTimeout  = 10 * time.Second
)

var errNoConnection = fmt.Errorf("no connection was accepted within %s", dialTimeout)

// Dialer connects to the port that a request goes to.
type Dialer func(ctx context.Context) (io.ReadWriteCloser, error)

// Proxy forwards one request.
type Proxy struct {
	// Scheme and Host (with a port) are those of the forwarded request.
	Scheme, Host string
	// Path is the part of the request's path that is passed on, escaped as the client sent it; empty or with a slash
	// first.
	Path string
	// Dial makes the one connection.
	Dial Dialer
	// Transport takes the request instead; it is for kubelets, which know the API server by its certificate. Their answers
	// set no cookies and lead to no other host.
	Transport http.RoundTripper
	// WriteTimeout is how long the client may take to read a piece of the answer.
	WriteTimeout time.Duration
	Log          *slog.Logger
}

// Serve forwards the request and sends the answer back. The error is 503 if there was no answer; nothing has been written
// then.
func (p *Proxy) Serve(w *echo.Response, in *http.Request) error {
	if p.redirect(w, in) {
		return nil
	}
	ctx, cancel := context.WithCancelCause(in.Context())
	defer cancel(nil)
	through := &links{prefix: strings.TrimSuffix(in.URL.EscapedPath(), p.Path), backend: p.Host, host: in.Host}
	transport, out := p.Transport, InPieces(w, p.WriteTimeout)
	if transport == nil {
		transport = p.transport(ctx, cancel)
	} else { // what it begins at a kubelet must end with the client
		out = streaming.NoticeDisconnect(ctx, out, func() { cancel(nil) })
	}
	var failed error
	reverse := httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		ErrorLog: slog.NewLogLogger(p.Log.Handler(), slog.LevelDebug),
		Rewrite:  func(pr *httputil.ProxyRequest) { p.rewriteRequest(pr) },
		ModifyResponse: func(resp *http.Response) error {
			if p.Transport != nil {
				resp.Header.Del("Set-Cookie")
			}
			if err := through.rewriteResponse(resp); err != nil || p.Transport == nil {
				return err
			}
			return staysHere(resp)
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
	}
	reverse.ServeHTTP(out, in.WithContext(ctx))
	switch {
	case failed == nil:
		return nil
	case errors.Is(context.Cause(ctx), errNoConnection):
		failed = errNoConnection
	case in.Context().Err() != nil:
		return nil // the client has disconnected
	}
	return apierrors.NewServiceUnavailable("error trying to reach service: " + failed.Error())
}

// staysHere refuses a redirect to another host. A kubelet that somebody has taken over could send clients, with their
// credentials, elsewhere.
func staysHere(resp *http.Response) error {
	for _, at := range resp.Header.Values("Location") {
		u, err := url.Parse(at)
		// Browsers take a backslash for a slash, and "http:host" for a host.
		if err != nil || u.Scheme != "" || u.Opaque != "" || u.Host != "" || strings.HasPrefix(u.Path, "//") || strings.Contains(at, `\`) || at != resp.Header.Get("Location") {
			return errors.New("it leads to another host")
		}
	}
	return nil
}

// redirect redirects a request for the root without a trailing slash to the path with one. Otherwise relative
// links on that page would be one level too high.
func (p *Proxy) redirect(w *echo.Response, in *http.Request) bool {
	if p.Path != "" || in.Header.Get("Upgrade") != "" || in.Method != http.MethodGet && in.Method != http.MethodHead {
		return false
	}
	at := in.URL.EscapedPath() + "/"
	if in.URL.RawQuery != "" {
		at += "?" + in.URL.RawQuery
	}
	w.Header().Set("Location", at)
	w.WriteHeader(http.StatusMovedPermanently)
	return true
}

// transport uses one connection. If it is not open in time, ctx is cancelled with errNoConnection.
func (p *Proxy) transport(ctx context.Context, cancel context.CancelCauseFunc) *http.Transport {
	return &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			late := time.AfterFunc(dialTimeout, func() { cancel(errNoConnection) })
			defer late.Stop()
			conn, err := p.Dial(ctx)
			if err != nil {
				return nil, err
			}
			return AsConn(conn), nil
		},
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // no pod address is known in advance to verify a certificate against
		TLSHandshakeTimeout: tlsTimeout,
		DisableKeepAlives:   true,
		DisableCompression:  true, // client and pod negotiate compression themselves
	}
}

// rewriteRequest turns the client's request into the forwarded one, without the client's credentials for the API.
func (p *Proxy) rewriteRequest(pr *httputil.ProxyRequest) {
	out, in := pr.Out, pr.In
	path := p.Path
	if path == "" {
		path = "/"
	}
	out.URL = &url.URL{Scheme: p.Scheme, Host: p.Host, RawQuery: in.URL.RawQuery}
	if decoded, err := url.PathUnescape(path); err == nil { // it cannot fail: the server has decoded the path already
		out.URL.Path, out.URL.RawPath = decoded, path
	}
	out.Header["X-Forwarded-For"] = in.Header["X-Forwarded-For"] // SetXForwarded appends to it
	pr.SetXForwarded()
	out.Header.Set("X-Forwarded-Uri", in.URL.EscapedPath())
	DropCredentials(out.Header)
}

// DropCredentials removes from the header of a request that is passed on what was meant for the API server alone.
func DropCredentials(h http.Header) {
	h.Del("Authorization")
	for name := range h {
		if strings.HasPrefix(name, "Impersonate-") {
			h.Del(name)
		}
	}
	streaming.DropBearer(h)
}

// InPieces is an answer each of whose pieces the client must read within timeout.
func InPieces(w *echo.Response, timeout time.Duration) http.ResponseWriter {
	return &response{w, streaming.NewWriter(w, timeout)}
}

// response is an answer each of whose pieces the client must read in time.
type response struct {
	*echo.Response
	pieces *streaming.Writer
}

// Write implements io.Writer.
func (p *response) Write(b []byte) (int, error) { return p.pieces.Write(b) }

// WriteHeader implements http.ResponseWriter. An informational status ("100 Continue") does not begin the answer yet.
func (p *response) WriteHeader(code int) {
	if code >= 100 && code < 200 && code != http.StatusSwitchingProtocols {
		p.Writer.WriteHeader(code)
		return
	}
	p.Response.WriteHeader(code)
}
