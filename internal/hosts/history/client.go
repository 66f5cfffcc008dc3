package history

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"minik8s/internal/client/remote"
	"minik8s/internal/hosts"
)

// namespace is where the objects are.
const namespace = "default"

// caller sends requests to one master. Each has connections of its own, by HTTP/1.1: a request that gets no answer ends its
// connection, as the plainest of clients does.
type caller struct {
	host *hosts.Host
	base string
	http *http.Client
}

// dialer is how a caller reaches an address: from the network, or from a host.
type dialer func(ctx context.Context, address string) (net.Conn, error)

func newCaller(h *hosts.Host, dial dialer) (*caller, error) {
	cfg, err := remote.ConfigFromKubeconfig(filepath.Join(h.Dir(), "admin.kubeconfig"), "")
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cfg.Cert, cfg.Key)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cfg.CA)
	address := net.JoinHostPort(h.Address.String(), "6443")
	return &caller{host: h, base: "https://" + address + "/api/v1/namespaces/" + namespace + "/configmaps", http: &http.Client{
		Transport: &http.Transport{
			DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, address) },
			TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, Certificates: []tls.Certificate{pair}},
			TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{},
			TLSHandshakeTimeout: 2 * time.Second,
		}}}, nil
}

func (c *caller) close() { c.http.CloseIdleConnections() }

// object is a ConfigMap, a list of them, or a Status.
type object struct {
	APIVersion string            `json:"apiVersion,omitempty"`
	Kind       string            `json:"kind,omitempty"`
	Metadata   meta              `json:"metadata,omitzero"`
	Data       map[string]string `json:"data,omitempty"`
	Items      []object          `json:"items,omitempty"`
	Reason     string            `json:"reason,omitempty"`
	Message    string            `json:"message,omitempty"`
	Code       int               `json:"code,omitempty"`
	Details    struct {
		UID string `json:"uid,omitempty"`
	} `json:"details,omitzero"`
	Preconditions map[string]string `json:"preconditions,omitempty"`
}

type meta struct {
	Name            string `json:"name,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	UID             string `json:"uid,omitempty"`

	Annotations map[string]string `json:"annotations,omitempty"`
}

func (o *object) revision() int64 {
	n, err := strconv.ParseInt(o.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (o *object) item() Item {
	return Item{Key: o.Metadata.Name, Revision: o.revision(), Value: o.Data["v"], UID: o.Metadata.UID}
}

// do sends the request that o describes and fills in its answer. The times are taken right before and after.
func (c *caller) do(ctx context.Context, now func() time.Duration, o *Op) {
	method, url, body := http.MethodGet, c.base+"/"+o.Key, (*object)(nil)
	switch o.Kind {
	case Create:
		method, url = http.MethodPost, c.base
		body = configMap(o)
	case Update, Replace:
		method = http.MethodPut
		body = configMap(o)
	case Delete:
		method = http.MethodDelete
		if o.Version != 0 {
			body = &object{APIVersion: "v1", Kind: "DeleteOptions", Preconditions: map[string]string{"resourceVersion": strconv.FormatInt(o.Version, 10)}}
		}
	case List:
		url = c.base
	}
	o.Master = c.host.Name
	o.Call = now()
	answer, code, sent, err := c.send(ctx, method, url, body)
	o.Return = now()
	o.Code = code
	o.Outcome = outcome(code, sent, err)
	switch {
	case err != nil:
		o.Why = err.Error()
	case o.Outcome != OK:
		o.Why = answer.Reason + ": " + answer.Message
	case o.Kind == List:
		o.Revision = answer.revision()
		for i := range answer.Items {
			o.Items = append(o.Items, answer.Items[i].item())
		}
	case o.Kind == Delete:
		o.Read = Item{Key: o.Key, UID: answer.Details.UID}
	default:
		o.Read = answer.item()
	}
}

func configMap(o *Op) *object {
	cm := &object{APIVersion: "v1", Kind: "ConfigMap", Metadata: meta{Name: o.Key}, Data: map[string]string{"v": o.Value}}
	if o.Kind == Update {
		cm.Metadata.ResourceVersion = strconv.FormatInt(o.Version, 10)
	}
	return cm
}

// outcome is what an answer means. What was not sent is refused; an answer that did not come, or tells of a failure, leaves
// it open. 503 means that nothing was changed, as the API says it does.
func outcome(code int, sent bool, err error) Outcome {
	switch {
	case err != nil && !sent:
		return Refused
	case err != nil:
		return Unknown
	case code < http.StatusMultipleChoices:
		return OK
	case code < http.StatusInternalServerError, code == http.StatusServiceUnavailable, code == http.StatusInsufficientStorage:
		return Refused
	}
	return Unknown
}

// send sends a request. sent reports whether any of it may have left: without a connection, nothing has.
func (c *caller) send(ctx context.Context, method, url string, body *object) (answer *object, code int, sent bool, err error) {
	resp, connected, err := c.open(ctx, method, url, body)
	if err != nil {
		return nil, 0, connected, err
	}
	defer resp.Body.Close() //nolint:errcheck // it is read
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, resp.StatusCode, true, err
	}
	answer = &object{}
	if err := json.Unmarshal(data, answer); err != nil {
		if resp.StatusCode >= http.StatusBadRequest {
			return &object{Message: string(data)}, resp.StatusCode, true, nil
		}
		return nil, resp.StatusCode, true, fmt.Errorf("%w: %.200s", err, data)
	}
	return answer, resp.StatusCode, true, nil
}

func (c *caller) open(ctx context.Context, method, url string, body *object) (resp *http.Response, connected bool, err error) {
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, false, err
		}
		in = bytes.NewReader(b)
	}
	var got atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { got.Store(true) }})
	req, err := http.NewRequestWithContext(ctx, method, url, in)
	if err != nil {
		return nil, false, err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err = c.http.Do(req)
	return resp, got.Load(), err
}
