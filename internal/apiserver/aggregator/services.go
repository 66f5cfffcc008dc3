package aggregator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"minik8s/internal/api"
	"minik8s/internal/apiserver/nodes"
	"minik8s/internal/apiserver/proxy"
	"minik8s/internal/certs"
	"minik8s/internal/clock"
	"minik8s/internal/registry"
)

// How long a Service's pod may take to accept a connection and to agree on TLS, and to answer a check.
const (
	dialTimeout  = 10 * time.Second
	checkTimeout = 5 * time.Second
)

const (
	idleTimeout = time.Minute
	maxIdle     = 4 // connections to one Service that are kept for the next request
)

// checks is how often a Service is asked at once whether it answers, when the first answer was none. One that is good
// counts, as in Kubernetes: a Service may have several pods.
const checks = 4

// ServicesConfig configures Services.
type ServicesConfig struct {
	Registry *registry.Registry
	// Cert is the front proxy's, by which an extension API server believes whom a request is from.
	Cert *certs.Kept
	// Dial connects to a port of a pod; nil: by the pod's address.
	Dial func(ctx context.Context, pod *corev1.Pod, port int32) (io.ReadWriteCloser, error)
}

// Services reaches the Services that serve groups. It keeps a few connections to each, for a minute.
type Services struct {
	cfg ServicesConfig

	mu   sync.Mutex
	ways map[string]*way // by the APIService's name
}

// way is how a Service is reached, as long as the APIService says the same.
type way struct {
	spec      apiregistrationv1.APIServiceSpec
	transport *http.Transport
}

// NewServices returns the ways to Services.
func NewServices(cfg ServicesConfig) *Services {
	if cfg.Dial == nil {
		cfg.Dial = nodes.ByAddress
	}
	return &Services{cfg: cfg, ways: map[string]*way{}}
}

// serviceURL is where an APIService's Service answers. The name is also that of its certificate.
func serviceURL(a *apiregistrationv1.APIService, path string) *url.URL {
	return &url.URL{Scheme: "https", Host: net.JoinHostPort(serverName(a), strconv.Itoa(int(portOf(a)))), Path: path}
}

func serverName(a *apiregistrationv1.APIService) string {
	return a.Spec.Service.Name + "." + a.Spec.Service.Namespace + ".svc"
}

func portOf(a *apiregistrationv1.APIService) int32 {
	if p := a.Spec.Service.Port; p != nil {
		return *p
	}
	return 443
}

// transport returns the transport to an APIService's Service. The error is that its caBundle has no certificate.
func (s *Services) transport(a *apiregistrationv1.APIService) (*http.Transport, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	have := s.ways[a.Name]
	if have != nil && apiequality.Semantic.DeepEqual(have.spec, a.Spec) {
		return have.transport, nil
	}
	var pool *x509.CertPool // nil: the machine's
	if len(a.Spec.CABundle) > 0 {
		if pool = x509.NewCertPool(); !pool.AppendCertsFromPEM(a.Spec.CABundle) {
			return nil, errors.New("spec.caBundle of the APIService has no certificate in PEM")
		}
	}
	s.forget()
	made := &way{spec: *a.Spec.DeepCopy(), transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.dial(ctx, a) },
		// Upgraded requests take over their connection, which only HTTP/1.1 allows.
		TLSClientConfig: &tls.Config{Time: clock.Now, RootCAs: pool, ServerName: serverName(a), MinVersion: tls.VersionTLS12,
			InsecureSkipVerify: a.Spec.InsecureSkipTLSVerify, //nolint:gosec // the APIService says so
			NextProtos:         []string{"http/1.1"}, GetClientCertificate: s.cfg.Cert.ForClient},
		TLSHandshakeTimeout: dialTimeout, MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: idleTimeout,
		DisableCompression: true, // what is sent on is sent as it came
	}}
	if have != nil {
		have.transport.CloseIdleConnections()
	}
	s.ways[a.Name] = made
	return made.transport, nil
}

// forget drops the ways of APIServices that are gone. The caller holds the lock.
func (s *Services) forget() {
	for name, w := range s.ways {
		if s.cfg.Registry.Cached(api.APIServices, "", name) == nil {
			w.transport.CloseIdleConnections()
			delete(s.ways, name)
		}
	}
}

// dial connects to a ready pod of an APIService's Service.
func (s *Services) dial(ctx context.Context, a *apiregistrationv1.APIService) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	at := a.Spec.Service
	svc, ok := s.cfg.Registry.Cached(api.Services, at.Namespace, at.Name).(*corev1.Service)
	if !ok {
		return nil, fmt.Errorf("service %s/%s does not exist", at.Namespace, at.Name)
	}
	target, err := proxy.ParseTarget(api.Services.Singular, fmt.Sprintf("https:%s:%d", at.Name, portOf(a)))
	if err != nil {
		return nil, err
	}
	pod, port, err := target.PodOf(ctx, s.cfg.Registry, svc)
	if err != nil {
		return nil, err
	}
	conn, err := s.cfg.Dial(ctx, pod, port)
	if err != nil {
		return nil, err
	}
	return proxy.AsConn(conn), nil
}

// aggregatorUser is as whom the aggregator itself asks, with Kubernetes' name.
var aggregatorUser = registry.User{Name: "system:kube-aggregator", Groups: []string{registry.GroupMasters}}

// ask gets a path of an APIService's Service in the aggregator's own name. Whoever calls closes the body.
func (s *Services) ask(ctx context.Context, a *apiregistrationv1.APIService, path string) (*http.Response, error) {
	transport, err := s.transport(a)
	if err != nil {
		return nil, err
	}
	at := serviceURL(a, path)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	setUser(req.Header, aggregatorUser)
	resp, err := transport.RoundTrip(req)
	if err != nil {
		transport.CloseIdleConnections()
		return nil, fmt.Errorf("failing or missing response from %s: %w", at, withoutSource(err))
	}
	if resp.StatusCode < 200 || resp.StatusCode >= 300 {
		resp.Body.Close() //nolint:errcheck // it is not read
		return nil, fmt.Errorf("failing or missing response from %s: bad status from %s: %d", at, at, resp.StatusCode)
	}
	return resp, nil
}

// withoutSource leaves the port of this end out of an error, which is another one each time.
func withoutSource(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		op.Source = nil
	}
	return err
}

// Check asks an APIService's Service for the discovery of its group and version. The error says why no good answer came.
func (s *Services) Check(ctx context.Context, a *apiregistrationv1.APIService) error {
	err := s.check(ctx, a)
	if err == nil || ctx.Err() != nil {
		return err
	}
	results := make(chan error, checks)
	for range checks {
		go func() { results <- s.check(ctx, a) }()
	}
	for range checks {
		if err = <-results; err == nil {
			return nil
		}
	}
	return err
}

func (s *Services) check(ctx context.Context, a *apiregistrationv1.APIService) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	resp, err := s.ask(ctx, a, discoveryPath(a))
	if err != nil {
		return err
	}
	io.Copy(io.Discard, io.LimitReader(resp.Body, maxDiscovery)) //nolint:errcheck // so that the connection can be used again
	return resp.Body.Close()
}

func discoveryPath(a *apiregistrationv1.APIService) string {
	return "/apis/" + a.Spec.Group + "/" + a.Spec.Version
}
