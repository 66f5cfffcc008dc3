package apiserver

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
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/apiserver/streaming"
)

// How long a pod may take to accept a connection and to agree on TLS. For its answer there is no bound but the
// client's patience, as in Kubernetes: who asks may well wait for something to happen.
const (
	proxyDialTimeout = 30 * time.Second
	proxyTLSTimeout  = 10 * time.Second
)

var errNoConnection = fmt.Errorf("the pod took no connection within %s", proxyDialTimeout)

// proxying are the routes of a subresource that passes any request on, each method allowed as what it is for objects.
func proxying(serve func(*Server, *request) error) map[string]route {
	routes := map[string]route{}
	for method, verb := range map[string]string{http.MethodGet: "get", http.MethodHead: "get", http.MethodPost: "create",
		http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete", http.MethodOptions: "options"} {
		routes[method] = route{verb: verb, serve: serve, long: true}
	}
	return routes
}

// backend is where in a pod a request goes.
type backend struct {
	scheme, name string
	port         int32 // 0: it was not said
}

// parseBackend reads NAME, NAME:PORT or SCHEME:NAME:PORT; the scheme and the port may be empty.
func parseBackend(id string) (backend, error) {
	bad := func() (backend, error) {
		return backend{}, apierrors.NewBadRequest(fmt.Sprintf("invalid pod request %q: it is NAME, NAME:PORT or SCHEME:NAME:PORT, "+
			"with http or https and the number of a port", id))
	}
	b := backend{scheme: "http"}
	port := ""
	switch parts := strings.Split(id, ":"); len(parts) {
	case 1:
		b.name = parts[0]
	case 2:
		b.name, port = parts[0], parts[1]
	case 3:
		if parts[0] != "" {
			b.scheme = parts[0]
		}
		b.name, port = parts[1], parts[2]
	default:
		return bad()
	}
	if b.name == "" || b.scheme != "http" && b.scheme != "https" {
		return bad()
	}
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return bad()
		}
		b.port = int32(n)
	}
	return b, nil
}

// portOf is the port that is meant: the one that was said, the first that the pod's containers declare, or the scheme's.
func (b backend) portOf(pod *corev1.Pod) int32 {
	if b.port != 0 {
		return b.port
	}
	for i := range pod.Spec.Containers {
		if ports := pod.Spec.Containers[i].Ports; len(ports) > 0 {
			return ports[0].ContainerPort
		}
	}
	if b.scheme == "https" {
		return 443
	}
	return 80
}

// proxy passes a request on to a port of a pod, and the answer back.
func (s *Server) proxy(r *request) error {
	to, err := parseBackend(r.name)
	if err != nil {
		return err
	}
	pod, err := s.podNamed(r, to.name)
	if err != nil {
		return err
	}
	in := r.Request()
	upgrade := in.Header.Get("Upgrade") != ""
	if r.path == "" && !upgrade && (in.Method == http.MethodGet || in.Method == http.MethodHead) {
		// Links in what is at the root would be of one level too high.
		at := in.URL.EscapedPath() + "/"
		if in.URL.RawQuery != "" {
			at += "?" + in.URL.RawQuery
		}
		r.Response().Header().Set("Location", at)
		r.Response().WriteHeader(http.StatusMovedPermanently)
		return nil
	}
	ctx, cancel := context.WithCancelCause(in.Context())
	defer cancel(nil)
	port := to.portOf(pod)
	transport := &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			late := time.AfterFunc(proxyDialTimeout, func() { cancel(errNoConnection) })
			defer late.Stop()
			conn, err := s.cfg.Nodes.Dial(ctx, pod.Spec.NodeName, pod.Namespace, pod.Name, port)
			if err != nil {
				return nil, err
			}
			return asConn(conn), nil
		},
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // a pod's certificate names no address that could be known
		TLSHandshakeTimeout: proxyTLSTimeout,
		DisableKeepAlives:   true,
		DisableCompression:  true, // what client and pod agree on is theirs
	}
	host := net.JoinHostPort(firstOf(pod.Status.PodIP, pod.Name), strconv.Itoa(int(port)))
	pass := &passage{prefix: strings.TrimSuffix(in.URL.EscapedPath(), r.path), backend: host, host: in.Host}
	var failed error
	p := httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		ErrorLog:       slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug),
		Rewrite:        func(pr *httputil.ProxyRequest) { r.forward(pr, to.scheme, host) },
		ModifyResponse: pass.back,
		ErrorHandler:   func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
	}
	p.ServeHTTP(&pacedResponse{r.Response(), s.paced(r.Response())}, in.WithContext(ctx))
	switch {
	case failed == nil:
		return nil
	case errors.Is(context.Cause(ctx), errNoConnection):
		failed = errNoConnection
	case in.Context().Err() != nil:
		return nil // the client has gone
	}
	return apierrors.NewServiceUnavailable("error trying to reach service: " + failed.Error())
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// forward makes the request for the pod out of the client's. What the client has shown to the API is none of the pod's
// business.
func (r *request) forward(pr *httputil.ProxyRequest, scheme, host string) {
	out, in := pr.Out, pr.In
	path := r.path
	if path == "" {
		path = "/"
	}
	out.URL = &url.URL{Scheme: scheme, Host: host, RawQuery: in.URL.RawQuery}
	if decoded, err := url.PathUnescape(path); err == nil { // it was, or the server would not have taken it
		out.URL.Path, out.URL.RawPath = decoded, path
	}
	out.Header["X-Forwarded-For"] = in.Header["X-Forwarded-For"] // SetXForwarded adds to it
	pr.SetXForwarded()
	out.Header.Set("X-Forwarded-Uri", in.URL.EscapedPath())
	out.Header.Del("Authorization")
	for name := range out.Header {
		if strings.HasPrefix(name, "Impersonate-") {
			out.Header.Del(name)
		}
	}
	streaming.DropBearer(out.Header)
}

// passage is what the way through the API changes about addresses that a pod names.
type passage struct {
	prefix  string // of the path, up to what the pod sees of it; escaped
	backend string // what the pod is called here
	host    string // and what the client calls the API
}

// back makes an answer one of the API: links to the pod itself lead through the API again, and scripts of other
// sites get no leave from a pod to read what is the API's.
func (p *passage) back(resp *http.Response) error {
	for _, name := range []string{"Access-Control-Allow-Credentials", "Access-Control-Allow-Headers",
		"Access-Control-Allow-Methods", "Access-Control-Allow-Origin"} {
		resp.Header.Del(name)
	}
	if at := resp.Header.Get("Location"); at != "" {
		resp.Header.Set("Location", p.through(at))
	}
	return p.page(resp)
}

// through is a link as the client has to follow it. Those to other places, and relative ones, stay as they are.
func (p *passage) through(link string) string {
	u, err := url.Parse(link)
	if err != nil || u.Opaque != "" || u.Host != "" && u.Host != p.backend && u.Host != p.host || !strings.HasPrefix(u.Path, "/") {
		return link
	}
	path := u.EscapedPath()
	if path != p.prefix && !strings.HasPrefix(path, p.prefix+"/") {
		path = p.prefix + path
	}
	if u.RawQuery != "" || u.ForceQuery {
		path += "?" + u.RawQuery
	}
	if u.Fragment != "" {
		path += "#" + u.EscapedFragment()
	}
	return path
}

// pacedResponse is an answer each piece of which the client has to take in time.
type pacedResponse struct {
	*echo.Response
	paced *paced
}

// Write implements io.Writer.
func (p *pacedResponse) Write(b []byte) (int, error) { return p.paced.Write(b) }

// WriteHeader implements http.ResponseWriter. What is said before the answer ("100 Continue") is not yet the answer.
func (p *pacedResponse) WriteHeader(code int) {
	if code >= 100 && code < 200 && code != http.StatusSwitchingProtocols {
		p.Writer.WriteHeader(code)
		return
	}
	p.Response.WriteHeader(code)
}

// asConn is a stream to a pod as a connection. One that comes from another node has no deadlines; none are needed,
// since the request's end closes it.
func asConn(c io.ReadWriteCloser) net.Conn {
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
