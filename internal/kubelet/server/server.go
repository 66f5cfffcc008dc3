package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/certs"
	"minik8s/internal/clock"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/stats"
	"minik8s/internal/kubelet/stats/cadvisor"
	"minik8s/internal/kubelet/stats/events"
	"minik8s/internal/kubelet/stats/storage"
	"minik8s/internal/proxy/report"
)

// Pods are the pods of this node, which the kubelet runs. Errors are API errors: NotFound, BadRequest.
type Pods interface {
	Pods() []*corev1.Pod
	// VolumeDirs are the directories of a pod's volumes, by their names: of those whose content is the pod's own.
	VolumeDirs(pod *corev1.Pod) map[string]string
	Logs(ctx context.Context, namespace, pod, container string, opts *corev1.PodLogOptions) (io.ReadCloser, error)
	// Connectable returns the error with which Exec and Attach would fail at once, or nil.
	Connectable(namespace, pod, container string) error
	Exec(ctx context.Context, namespace, pod, container string, cfg cri.ExecConfig) (int32, error)
	Attach(ctx context.Context, namespace, pod, container string, cfg cri.AttachConfig) error
	PortForward(ctx context.Context, namespace, pod string, port int32) (io.ReadWriteCloser, error)
	// Dial connects from within a pod's network, as net.Dialer does.
	Dial(ctx context.Context, namespace, pod, network, address string) (net.Conn, error)
}

// Services says what this node does with connections to a Service: see package proxy.
type Services interface {
	Inspect(namespace, name string, from netip.Addr) report.Service
}

// Runtime is what the server needs of the container runtime.
type Runtime interface {
	cri.Images
	stats.Source
	events.Source
	Files(ctx context.Context) ([]cri.Files, error)
}

// Config is what a server serves, and to whom.
type Config struct {
	NodeName string
	// Pods returns the kubelet; nil while it does not run.
	Pods    func() Pods
	Runtime Runtime
	// CgroupRoot is the cgroup below which pods are.
	CgroupRoot string
	// DataDir is the daemon's data directory, on whose file system the files of containers are.
	DataDir string
	// Services returns the proxy of this node; nil while it does not run.
	Services func() Services
	// ClusterDomain is the end of Services' names, without dots around it.
	ClusterDomain string
	// ImagesChanged is called when an image was pulled or imported here.
	ImagesChanged func()
	// Cert is the server's certificate. ClientCA signs those of its clients.
	Cert     *certs.Kept
	ClientCA *x509.CertPool
	// WriteTimeout is how long a client may take to read a piece of an answer; 0: 2 min. The API server waits for its
	// own clients, some pieces at a time, so it has to be longer than the API server's.
	WriteTimeout time.Duration
	// Version is the daemon's.
	Version string
	// Metrics are the daemon's own, for /metrics; nil: the process's.
	Metrics prometheus.Gatherer
	Log     *slog.Logger
}

// Server is the server.
type Server struct {
	cfg Config
	mux *http.ServeMux
	// stats samples while somebody asks.
	stats *stats.Sampler
	// storage measures files while somebody asks.
	storage *storage.Meter
	events  *events.Log
}

// New makes a server; Serve serves.
func New(cfg Config) *Server {
	if cfg.WriteTimeout == 0 {
		cfg.WriteTimeout = 2 * time.Minute
	}
	if cfg.Metrics == nil {
		cfg.Metrics = prometheus.DefaultGatherer
	}
	s := &Server{cfg: cfg, mux: http.NewServeMux(), stats: stats.New(cfg.Runtime)}
	s.storage = storage.New(cfg.DataDir, s.places)
	if cfg.Runtime != nil {
		s.events = events.New(cfg.Runtime, cfg.CgroupRoot, cfg.Log)
	}
	handle := func(pattern string, serve func(http.ResponseWriter, *http.Request, Pods) error) {
		s.mux.HandleFunc(pattern, func(w http.ResponseWriter, req *http.Request) {
			pods := cfg.Pods() // once for each request: the kubelet may end meanwhile
			err := error(apierrors.NewServiceUnavailable("the kubelet of node " + cfg.NodeName + " is starting"))
			if pods != nil {
				err = serve(w, req, pods)
			}
			if err != nil {
				fail(w, err)
			}
		})
	}
	handle("GET /healthz", s.health)
	handle("GET /pods", s.pods)
	handle("GET /stats/summary", s.summary)
	handle("GET /metrics/cadvisor", s.containerMetrics)
	handle("GET /metrics/resource", s.resourceMetrics)
	handle("GET /metrics/node", s.machineMetrics)
	handle("GET /metrics", s.metrics)
	handle("GET "+cadvisor.V1, s.cadvisor)
	handle("POST "+cadvisor.V1, s.cadvisor) // its client posts its questions
	handle("GET "+cadvisor.V2, s.cadvisor)
	handle("GET /containerLogs/{namespace}/{pod}/{container}", s.logs)
	for _, method := range []string{"GET ", "POST "} { // a WebSocket, and SPDY
		handle(method+"/exec/{namespace}/{pod}/{container}", s.exec)
		handle(method+"/attach/{namespace}/{pod}/{container}", s.attach)
		handle(method+"/portForward/{namespace}/{pod}", s.portForward)
	}
	handle("GET "+report.Services+"{namespace}/{name}", s.service)
	handle("POST "+report.Dials+"{namespace}/{pod}", s.dial)
	handle("POST "+report.Lookups+"{namespace}/{pod}", s.lookup)
	handle("GET /images", s.listImages)
	handle("POST /images", s.addImage)
	handle("DELETE /images", s.removeImage)
	return s
}

// The limits for slow requests.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 3 * time.Minute
	// answerTimes times the write timeout is the limit for an answer that is not sent in pieces.
	answerTimes = 3
)

// Serve serves connections of l until ctx ends, which also tells its streams to end. It closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler: s, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, WriteTimeout: answerTimes * s.cfg.WriteTimeout,
		ErrorLog:    log.New(io.Discard, "", 0), // failed handshakes are not the server's errors
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	// Streams take over their connection, which only HTTP/1.1 allows.
	secure := tls.NewListener(l, &tls.Config{Time: clock.Now, GetCertificate: s.cfg.Cert.ForServer, ClientCAs: s.cfg.ClientCA,
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}})
	if s.events != nil {
		var following sync.WaitGroup
		following.Go(func() { s.events.Run(ctx) })
		defer following.Wait()
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(secure) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if srv.Shutdown(stop) != nil {
			srv.Close() //nolint:errcheck // no way to handle the error
		}
		<-ended
		return nil
	}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.TLS == nil || len(req.TLS.VerifiedChains) == 0 ||
		!slices.Contains(req.TLS.VerifiedChains[0][0].Subject.Organization, api.GroupMasters) {
		fail(w, apierrors.NewForbidden(api.Nodes.GR(), s.cfg.NodeName, errNotMaster))
		return
	}
	s.mux.ServeHTTP(w, req)
}

// fail answers with an error, as a Status.
func fail(w http.ResponseWriter, err error) {
	known, ok := err.(apierrors.APIStatus)
	if !ok {
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	send(w, int(status.Code), status)
}

func send(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(v) //nolint:errcheck // the client has disconnected
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request, _ Pods) error {
	w.Header().Set("Content-Type", "text/plain")
	_, err := io.WriteString(w, "ok")
	return ignore(err)
}

// ignore drops the error of writing an answer: the client has disconnected.
func ignore(error) error { return nil }

func (s *Server) pods(w http.ResponseWriter, _ *http.Request, pods Pods) error {
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: []corev1.Pod{}}
	for _, p := range pods.Pods() {
		list.Items = append(list.Items, *p)
	}
	send(w, http.StatusOK, list)
	return nil
}
