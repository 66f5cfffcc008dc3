package apiserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/version"

	"minik8s/internal/apiserver/streaming"
	"minik8s/internal/registry"
	"minik8s/internal/supervise"
)

// Config is what a server is made from.
type Config struct {
	Registry *registry.Registry
	// Listener is the HTTPS port, open; nil: no TCP. Run closes it.
	Listener net.Listener
	// Cert is the server's, ClientCA signs the certificates of its clients.
	Cert     tls.Certificate
	ClientCA *x509.CertPool
	// Address is the host and port under which others reach the API.
	Address string
	// Socket is the path of root's unix socket; empty: none.
	Socket string
	// Parts is how the daemon's parts stand, for /readyz and /metrics; Ready sums it up.
	Parts func() []supervise.State
	Ready func() bool
	// Panics counts the panics that parts survived, by name, for /metrics; nil: none are counted.
	Panics  func() map[string]int64
	Version version.Info
	// Nodes reaches the node agents; nil: no node can be reached.
	Nodes Nodes
	// WriteTimeout is how long a client may take for a piece of an answer; 0: half a minute.
	WriteTimeout time.Duration
	Log          *slog.Logger
}

// Nodes reaches the agent of a node by the node's name, for what is not an object.
type Nodes interface {
	Logs(ctx context.Context, node, namespace, pod, container string, opts *corev1.PodLogOptions) (io.ReadCloser, error)
	Images(node string) (Images, error)
	// Connectable says why Exec and Attach would fail at once; nil if they would not. In all three,
	// container may be empty if the pod has but one.
	Connectable(node, namespace, pod, container string) error
	// Exec runs a command in a container and returns its exit code.
	Exec(ctx context.Context, node, namespace, pod, container string, command []string, s streaming.Streams) (int32, error)
	// Attach connects to a container's own streams until it exits.
	Attach(ctx context.Context, node, namespace, pod, container string, s streaming.Streams) error
	// PortForward connects to a port inside a pod, on its loopback.
	PortForward(ctx context.Context, node, namespace, pod string, port int32) (io.ReadWriteCloser, error)
	// Dial connects to a port of a pod by its address.
	Dial(ctx context.Context, node, namespace, pod string, port int32) (io.ReadWriteCloser, error)
}

// Images are the images on one node.
type Images interface {
	List(ctx context.Context) ([]Image, error)
	// Pull calls progress now and then.
	Pull(ctx context.Context, ref string, progress func(done, total int64)) error
	Import(ctx context.Context, archive io.Reader) ([]Image, error)
	Remove(ctx context.Context, ref string) error
}

// Image is an image on a node.
type Image struct {
	ID   string   `json:"id"`
	Tags []string `json:"tags"`
	Size int64    `json:"size"` // bytes
}

// Server serves the API.
type Server struct {
	cfg     Config
	reg     *registry.Registry
	echo    *echo.Echo
	metrics *metrics
	openapi openapi
	flow    *flow
}

// New makes a server; Run listens.
func New(cfg Config) *Server {
	if cfg.WriteTimeout == 0 {
		cfg.WriteTimeout = writeTimeout
	}
	s := &Server{cfg: cfg, reg: cfg.Registry, echo: echo.New(), metrics: newMetrics(), flow: newFlow()}
	s.metrics.reg.MustRegister(partsCollector{cfg.Parts, cfg.Panics, cfg.Registry},
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "minik8s_api_requests_inflight",
			Help: "Requests under way that are not watches or other streams."}, func() float64 { return float64(s.flow.under.Load()) }))
	e := s.echo
	e.HTTPErrorHandler = s.fail
	e.Use(s.guard)
	s.routes(e)
	return s
}

// Handler is the whole API as an http.Handler.
func (s *Server) Handler() http.Handler { return s.echo }

func (s *Server) routes(e *echo.Echo) {
	get := func(path string, serve echo.HandlerFunc) { e.GET(path, s.byPath(serve)) }
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		get(path, s.health)
		get(path+"/*", s.health)
	}
	get("/version", s.version)
	get("/version/", s.version)
	get("/metrics", s.serveMetrics)
	get("/debug/pprof/*", s.profile)
	get("/", s.paths)
	get("/api", s.coreVersions)
	get("/api/", s.coreVersions)
	get("/apis", s.groups)
	get("/apis/", s.groups)
	get("/apis/:group", s.group)
	get("/apis/:group/", s.group)
	get("/api/v1", s.resources)
	get("/api/v1/", s.resources)
	get("/apis/:group/:version", s.resources)
	get("/apis/:group/:version/", s.resources)
	get("/openapi/v2", s.openapiV2)
	get("/openapi/v3", s.openapiIndex)
	get("/openapi/v3/*", s.openapiDoc)
	get("/.well-known/openid-configuration", s.issuer)
	get("/openid/v1/jwks", s.issuerKeys)
	e.Any("/api/v1/*", s.object)
	e.Any("/apis/:group/:version/*", s.object)
	e.GET("/minik8s/v1/nodes/:node/images", s.listImages)
	e.POST("/minik8s/v1/nodes/:node/images", s.addImage)
	e.DELETE("/minik8s/v1/nodes/:node/images", s.removeImage)
}

// The limits that garbage, huge and slow requests meet.
const (
	maxHeader     = 64 << 10
	maxBody       = 3 << 20
	maxDrain      = 16 << 20 // of a body that is too large, to be polite
	headerTimeout = 10 * time.Second
	bodyTimeout   = 30 * time.Second
	idleTimeout   = 3 * time.Minute
	writeTimeout  = 30 * time.Second
	// answerTimes is how many times that an answer may take which is not sent in pieces: from the end of the
	// request's header on it is the body, the work and the writing.
	answerTimes = 3
)

// Run serves until ctx ends; ready is called once every listener is open.
func (s *Server) Run(ctx context.Context, ready func()) error {
	listeners, err := s.listen(ctx)
	if err != nil {
		return err
	}
	srv := &http.Server{
		Handler: s.echo, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, WriteTimeout: answerTimes * s.cfg.WriteTimeout, MaxHeaderBytes: maxHeader,
		// Broken handshakes and clients that hang up are not our errors.
		ErrorLog:    log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return ctx }, // ends the watches when we stop
		ConnContext: withConn,
	}
	failed := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { failed <- srv.Serve(l) }()
	}
	ready()
	select {
	case err = <-failed:
	case <-ctx.Done():
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if srv.Shutdown(stop) != nil {
			srv.Close() //nolint:errcheck // nothing is left to be done about it
		}
	}
	if s.cfg.Socket != "" {
		os.Remove(s.cfg.Socket) //nolint:errcheck // a stale socket is replaced at the next start
	}
	return err
}

func (s *Server) listen(ctx context.Context) ([]net.Listener, error) {
	var out []net.Listener
	if s.cfg.Listener != nil {
		out = append(out, tls.NewListener(s.cfg.Listener, &tls.Config{
			Certificates: []tls.Certificate{s.cfg.Cert}, MinVersion: tls.VersionTLS12,
			ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: s.cfg.ClientCA,
			NextProtos: []string{"h2", "http/1.1"},
		}))
	}
	if s.cfg.Socket != "" {
		l, err := listenSocket(ctx, s.cfg.Socket)
		if err != nil {
			return nil, errors.Join(err, closeAll(out))
		}
		out = append(out, l)
	}
	return out, nil
}

func closeAll(ls []net.Listener) (err error) {
	for _, l := range ls {
		err = errors.Join(err, l.Close())
	}
	return err
}

// listenSocket opens the unix socket for root alone. One that a killed daemon left is replaced: the
// lock on the data directory says that nobody else serves it.
func listenSocket(ctx context.Context, path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("the API's unix socket: %w", err)
	}
	var lc net.ListenConfig
	old := syscall.Umask(0o177) // no moment in which others may connect
	l, err := lc.Listen(ctx, "unix", path)
	syscall.Umask(old)
	if err != nil {
		if strings.Contains(err.Error(), "invalid argument") && len(path) > 107 {
			return nil, fmt.Errorf("the API's unix socket: %s has %d bytes, a socket's path may have 107: choose a shorter --data-dir", path, len(path))
		}
		return nil, fmt.Errorf("the API's unix socket: %w", err)
	}
	return l, nil
}

// Listen opens the HTTPS port. The daemon does so before anything else: a port that is taken is then
// known before a data directory is made or a pod is touched.
func Listen(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, explainListen(addr, err)
	}
	return l, nil
}

func explainListen(addr string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("the API's address %s is in use by another program: stop it or choose another --api-port", addr)
	}
	return fmt.Errorf("the API cannot listen on %s: %w", addr, err)
}
