package apiserver

import (
	"context"
	"crypto/x509"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/version"

	"minik8s/internal/aggregation"
	"minik8s/internal/apiserver/aggregator"
	"minik8s/internal/apiserver/authentication"
	"minik8s/internal/apiserver/discovery"
	"minik8s/internal/apiserver/flowcontrol"
	"minik8s/internal/apiserver/handlers"
	"minik8s/internal/apiserver/members"
	"minik8s/internal/apiserver/nodes"
	"minik8s/internal/apiserver/openapi"
	"minik8s/internal/apiserver/proxy"
	"minik8s/internal/certs"
	"minik8s/internal/membership"
	"minik8s/internal/registry"
	"minik8s/internal/registry/serviceaccount"
	"minik8s/internal/supervise"
	"minik8s/internal/tokens"
)

// Config configures a server.
type Config struct {
	Registry *registry.Registry
	// Tokens signs the tokens of service accounts; nil: there are none.
	Tokens *tokens.Authority
	// Listener is the HTTPS port, open; nil: no TCP. Run closes it.
	Listener net.Listener
	// Cert is the server's certificate; ClientCA signs the certificates of its clients.
	Cert     *certs.Kept
	ClientCA *x509.CertPool
	// Address is the host and port under which clients reach the API.
	Address string
	// Socket is the path of root's unix socket; empty: none.
	Socket string
	// Parts returns the state of the daemon's parts, for /readyz and /metrics; Ready summarises it.
	Parts func() []supervise.State
	Ready func() bool
	// Panics counts the panics that parts survived, by name, for /metrics; nil: none are counted.
	Panics func() map[string]int64
	// Metrics are served beside the API's own; nil: the process's.
	Metrics prometheus.Gatherer
	Version version.Info
	// Kubelets reaches the kubelets of nodes: see nodes.Kubelets. Nil: no node can be reached.
	Kubelets http.RoundTripper
	// Masters is how other masters join, and who they are; nil: none can.
	Masters members.Store
	// DialPod connects to a port of a pod; nil: by the pod's address.
	DialPod func(ctx context.Context, pod *corev1.Pod, port int32) (io.ReadWriteCloser, error)
	// WriteTimeout is how long a client may take to read a piece of an answer; 0: half a minute.
	WriteTimeout time.Duration
	// Local are API groups that are not stored but answered in process; see package aggregation.
	Local []aggregation.Group
	// Connectors answer subresources that parts know of, by "PLURAL/SUBRESOURCE"; see package aggregation.
	Connectors map[string]aggregation.Connector
	// Images is the cluster's own registry of images, below /v2/; nil: there is none.
	Images http.Handler
	// Services reaches the Services that APIServices name; nil: none can be reached.
	Services *aggregator.Services
	// RequestTimeout is how long such a Service may take to answer; 0: a minute.
	RequestTimeout time.Duration
	// Limits bound what is under way; zero: flowcontrol.Default.
	Limits flowcontrol.Limits
	Log    *slog.Logger
}

// Server serves the API.
type Server struct {
	cfg     Config
	reg     *registry.Registry
	tokens  *serviceaccount.Tokens
	echo    *echo.Echo
	metrics *metrics
	auth    *authentication.Authenticator
	limiter *flowcontrol.Limiter
}

// New returns a server; Run listens.
func New(cfg Config) *Server {
	if cfg.WriteTimeout == 0 {
		cfg.WriteTimeout = writeTimeout
	}
	if cfg.Limits == (flowcontrol.Limits{}) {
		cfg.Limits = flowcontrol.Default
	}
	objects := cfg.Registry.Objects()
	checks := serviceaccount.New(cfg.Tokens, objects)
	if cfg.Metrics == nil {
		cfg.Metrics = prometheus.DefaultGatherer
	}
	s := &Server{cfg: cfg, reg: cfg.Registry, tokens: checks, echo: echo.New(), metrics: newMetrics(),
		auth: authentication.New(cfg.Registry, objects, checks), limiter: flowcontrol.NewLimiter(cfg.Limits)}
	s.metrics.reg.MustRegister(partsCollector{cfg.Parts, cfg.Panics, cfg.Registry},
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "minik8s_api_requests_inflight",
			Help: "Requests under way that are not watches or other streams."}, func() float64 { return float64(s.limiter.Inflight()) }))
	e := s.echo
	e.HTTPErrorHandler = s.fail
	e.Pre(seedRoutes)
	e.Use(s.guard)
	s.routes(e)
	return s
}

// Handler returns the whole API as an http.Handler.
func (s *Server) Handler() http.Handler { return s.echo }

func (s *Server) routes(e *echo.Echo) {
	get := func(path string, serve echo.HandlerFunc) { e.GET(path, s.byPath(serve)) }
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		get(path, s.health)
		get(path+"/*", s.health)
	}
	get("/version", s.version)
	get("/version/", s.version)
	e.GET("/metrics", s.authorised(s.serveMetrics)) // also while too much is under way: it tells so
	e.GET("/metrics/objects", s.authorised(s.objectMetrics))
	e.GET("/debug/pprof/*", s.lasting(s.profile))
	get("/", s.paths)
	others := aggregator.New(aggregator.Config{Registry: s.reg, Limiter: s.limiter, Local: s.cfg.Local, Services: s.cfg.Services,
		RequestTimeout: s.cfg.RequestTimeout, WriteTimeout: s.cfg.WriteTimeout, Log: s.cfg.Log})
	kinds := discovery.Handler{Kinds: s.reg.Kinds(), Others: others, Address: s.cfg.Address}
	for _, slash := range []string{"", "/"} {
		get("/api"+slash, kinds.CoreVersions)
		get("/apis"+slash, kinds.Groups)
		get("/apis/:group"+slash, kinds.Group)
		get("/api/v1"+slash, kinds.Resources)
		get("/apis/:group/:version"+slash, kinds.Resources)
	}
	docs := openapi.New(s.reg.Kinds())
	get("/openapi/v2", docs.V2)
	get("/openapi/v3", docs.Index)
	get("/openapi/v3/*", docs.V3)
	get("/.well-known/openid-configuration", s.issuer)
	get("/openid/v1/jwks", s.issuerKeys)
	agents := &nodes.Handler{Kubelets: s.cfg.Kubelets, Dial: s.cfg.DialPod, WriteTimeout: s.cfg.WriteTimeout, Log: s.cfg.Log}
	objects := handlers.New(handlers.Config{Registry: s.reg, Limiter: s.limiter, Nodes: agents, Connectors: s.cfg.Connectors, Watches: s.metrics.watches, WriteTimeout: s.cfg.WriteTimeout})
	e.Any("/api/v1/*", objects.Serve)
	e.Any("/apis/:group/:version/*", others.Door(objects.Serve))
	if s.cfg.Masters != nil {
		m := &members.Handler{Store: s.cfg.Masters, WriteTimeout: s.cfg.WriteTimeout}
		e.POST(membership.KeysPath, s.lasting(m.Keys))
		e.POST(membership.Path, s.lasting(m.Admit))
		get(membership.Path, m.List)
		e.DELETE(membership.Path+"/:member", s.lasting(m.Remove))
		e.GET(membership.SnapshotPath, s.lasting(m.Snapshot))
		get(membership.SettingsPath, m.Settings)
	}
	if s.cfg.Images != nil {
		e.Any("/v2/*", s.lasting(func(c echo.Context) error {
			s.cfg.Images.ServeHTTP(proxy.InPieces(c.Response(), s.cfg.WriteTimeout), c.Request())
			return nil
		}))
	}
	images := &nodes.ImageHandler{Handler: agents, Registry: s.reg}
	e.Match([]string{http.MethodGet, http.MethodPost, http.MethodDelete}, "/minik8s/v1/nodes/:node/images", images.Images)
}

// The limits for malformed, large and slow requests.
const (
	maxHeader     = 64 << 10
	headerTimeout = 10 * time.Second
	idleTimeout   = 3 * time.Minute
	writeTimeout  = 30 * time.Second
	// answerTimes times the write timeout is the limit for an answer that is not sent in pieces. It starts at the end
	// of the request's header and includes the body, the work and the writing.
	answerTimes = 3
)

// Run serves until ctx ends; ready is called once every listener is open.
func (s *Server) Run(ctx context.Context, ready func()) error {
	listeners, err := s.listen(ctx)
	if err != nil {
		return err
	}
	err = s.serve(ctx, s.echo, listeners, ready)
	if s.cfg.Socket != "" {
		os.Remove(s.cfg.Socket) //nolint:errcheck // a stale socket is replaced at the next start
	}
	return err
}

// ServeImages serves the cluster's own registry of images alone on a port of its own, until ctx ends; it closes the port. It is what Run
// serves below /v2/, with the same certificates, identities, rights and limits.
func (s *Server) ServeImages(ctx context.Context, l net.Listener) error {
	images := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/v2/") {
			http.Error(w, "here is the registry of images alone, below /v2/", http.StatusNotFound)
			return
		}
		s.echo.ServeHTTP(w, r)
	})
	return s.serve(ctx, images, []net.Listener{s.secured(l)}, func() {})
}

// serve serves until ctx ends; ready is called when it does.
func (s *Server) serve(ctx context.Context, h http.Handler, listeners []net.Listener, ready func()) (err error) {
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, WriteTimeout: answerTimes * s.cfg.WriteTimeout, MaxHeaderBytes: maxHeader,
		// Failed handshakes and clients that disconnect are not the server's errors.
		ErrorLog:    log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return ctx }, // ends the watches at shutdown
		ConnContext: authentication.WithConn,
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
			srv.Close() //nolint:errcheck // no way to handle the error
		}
	}
	return err
}
