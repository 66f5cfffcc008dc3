package nodes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/apiserver/proxy"
	"minik8s/internal/certs"
	"minik8s/internal/clock"
	"minik8s/internal/registry"
	"minik8s/internal/streaming"
)

// How long a kubelet may take to accept a connection and to agree on TLS. The time for its answer is not limited: it
// may be pulling an image.
const (
	dialTimeout = 10 * time.Second
	idleTimeout = time.Minute
	maxIdle     = 4  // connections to one kubelet that are kept for the next request
	sessions    = 64 // TLS sessions that are kept, one for each kubelet
)

// Kubelets is a transport for requests to https://NODE/PATH, where NODE is the name of a Node. find returns the address
// of its kubelet. The kubelet must have a certificate of ca for the node's name; cert is the API server's.
func Kubelets(find func(ctx context.Context, node string) (address string, err error), cert *certs.Kept, ca *x509.CertPool) http.RoundTripper {
	d := net.Dialer{Timeout: dialTimeout}
	return &http.Transport{
		DialContext: func(ctx context.Context, network, at string) (net.Conn, error) {
			node, _, err := net.SplitHostPort(at)
			if err != nil {
				return nil, err
			}
			address, err := find(ctx, node)
			if err != nil {
				return nil, err
			}
			return d.DialContext(ctx, network, address)
		},
		// Streams take over their connection, which only HTTP/1.1 allows. So most need a new one, which a resumed
		// session makes much cheaper.
		TLSClientConfig: &tls.Config{Time: clock.Now, RootCAs: ca, GetClientCertificate: cert.ForClient, MinVersion: tls.VersionTLS13,
			NextProtos: []string{"http/1.1"}, ClientSessionCache: tls.NewLRUClientSessionCache(sessions)},
		TLSHandshakeTimeout: dialTimeout, MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: idleTimeout,
		DisableCompression: true, // what is sent on is sent as it came
	}
}

// ByNode finds the address of a kubelet in its Node object.
func ByNode(reg *registry.Registry) func(ctx context.Context, node string) (string, error) {
	return func(ctx context.Context, name string) (string, error) {
		e, err := reg.Get(ctx, &registry.Request{User: registry.System, Verb: "get", Kind: api.Nodes, Name: name})
		if err != nil {
			return "", err
		}
		node := e.Object().(*corev1.Node)
		port := node.Status.DaemonEndpoints.KubeletEndpoint.Port
		for _, a := range node.Status.Addresses {
			if a.Type == corev1.NodeInternalIP && port != 0 {
				return net.JoinHostPort(a.Address, strconv.Itoa(int(port))), nil
			}
		}
		return "", errors.New("its kubelet has not reported its address yet")
	}
}

// Handler serves what the kubelets of nodes provide.
type Handler struct {
	// Kubelets reaches the kubelets: see the function Kubelets. Nil: no node can be reached.
	Kubelets http.RoundTripper
	// Dial connects to a port of a pod; nil: by the pod's address.
	Dial func(ctx context.Context, pod *corev1.Pod, port int32) (io.ReadWriteCloser, error)
	// WriteTimeout is how long a client may take to read a piece of an answer.
	WriteTimeout time.Duration
	Log          *slog.Logger
}

// Reachable refuses a pod that is on no node (400), or on one that cannot be reached (503).
func (h *Handler) Reachable(pod *corev1.Pod) error {
	if pod.Spec.NodeName == "" {
		return apierrors.NewBadRequest("pod " + pod.Name + " does not have a host assigned")
	}
	return h.reachable(pod.Spec.NodeName)
}

func (h *Handler) reachable(node string) error {
	if h.Kubelets == nil {
		return unreachable(node, errors.New("this API server reaches no kubelet"))
	}
	return nil
}

func unreachable(node string, why error) error {
	return apierrors.NewServiceUnavailable(fmt.Sprintf("node %s cannot be reached: %v", node, why))
}

// at is a path of a node's kubelet.
func at(node, path string, query url.Values) *url.URL {
	return &url.URL{Scheme: "https", Host: node, Path: path, RawQuery: query.Encode()}
}

// refused is a kubelet's own answer, which says why it does not do what was asked.
type refused struct{ error }

// Unwrap is the answer as an API error.
func (r refused) Unwrap() error { return r.error }

// failure is the error that a user gets: what the kubelet says, or 503 if it said nothing.
func failure(node string, err error) error {
	var r refused
	if errors.As(err, &r) {
		return r.error
	}
	return unreachable(node, err)
}

// get opens an answer of a kubelet. The errors are the kubelet's own, and 503 if it cannot be reached.
func (h *Handler) get(ctx context.Context, node, path string, query url.Values) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at(node, path, query).String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := h.Kubelets.RoundTrip(req)
	if err == nil {
		if err = check(resp); err == nil {
			return resp.Body, nil
		}
		resp.Body.Close() //nolint:errcheck // it was only read
	}
	return nil, failure(node, err)
}

// relay sends a request on to a path of a node's kubelet, and the answer back. If the kubelet upgrades the connection,
// bytes are passed on in both directions until either side ends. The errors are those of get.
func (h *Handler) relay(w *echo.Response, req *http.Request, node, path string, query url.Values) error {
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	var failed error
	reverse := httputil.ReverseProxy{
		Transport: h.Kubelets, FlushInterval: -1, ErrorLog: slog.NewLogLogger(h.Log.Handler(), slog.LevelDebug),
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.URL, pr.Out.Host = at(node, path, query), ""
			proxy.DropCredentials(pr.Out.Header)
		},
		ModifyResponse: func(resp *http.Response) error {
			err := check(resp)
			if v := resp.Header.Get(streaming.AcceptedProtocols); err != nil && v != "" {
				w.Header().Set(streaming.AcceptedProtocols, v)
			}
			return err
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
	}
	reverse.ServeHTTP(streaming.NoticeDisconnect(ctx, proxy.InPieces(w, h.WriteTimeout), cancel), req.WithContext(ctx))
	switch {
	case failed == nil:
		return nil
	case req.Context().Err() != nil && !w.Committed:
		// The client has disconnected, or this server stops. An empty answer would look like a good one.
		panic(http.ErrAbortHandler)
	case req.Context().Err() != nil:
		return nil
	}
	return failure(node, failed)
}

// maxRefusal is how much of a refusal is read.
const maxRefusal = 64 << 10

// check returns the error in a kubelet's answer, if it is not what was asked for: an upgraded connection, or else an
// ordinary answer. Redirects are not followed, and not passed on: a kubelet that somebody has taken over could send
// clients, with their credentials, elsewhere.
func check(resp *http.Response) error {
	resp.Header.Del("Set-Cookie")
	upgrade := resp.Request.Header.Get("Upgrade") != ""
	if upgrade && resp.StatusCode == http.StatusSwitchingProtocols || !upgrade && resp.StatusCode/100 == 2 {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	if err != nil {
		return err
	}
	if resp.StatusCode < http.StatusBadRequest || resp.StatusCode > 599 {
		return fmt.Errorf("its kubelet gave an answer that makes no sense: %s", resp.Status)
	}
	var status metav1.Status
	if json.Unmarshal(text, &status) != nil || status.Kind != "Status" {
		return refused{apierrors.NewGenericServerResponse(resp.StatusCode, resp.Request.Method, api.Nodes.GR(), resp.Request.URL.Host, string(text), 0, true)}
	}
	status.Code = int32(resp.StatusCode)
	return refused{&apierrors.StatusError{ErrStatus: status}}
}
