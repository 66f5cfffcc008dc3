package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
)

// userAgent is the User-Agent header, by which servers may recognise probes.
const userAgent = "kube-probe/1.37"

const maxRedirects = 10

// errElsewhere stops a request that is redirected to another host, which counts as success, as in Kubernetes.
var errElsewhere = errors.New("redirected to another host")

// anyServer accepts any certificate, as Kubernetes does: a probe checks health, not identity.
var anyServer = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // see above

// transport makes a new connection per request, uses no proxy, and checks no certificate.
var transport = &http.Transport{DisableKeepAlives: true, DisableCompression: true, Proxy: nil, TLSClientConfig: anyServer}

// transportH2C is the same for servers that speak HTTP/2 alone, and without TLS.
var transportH2C = func() *http.Transport {
	t := transport.Clone()
	t.Protocols = new(http.Protocols)
	t.Protocols.SetUnencryptedHTTP2(true)
	return t
}()

func transportFor(h *corev1.HTTPGetAction) *http.Transport {
	if h.Protocol != nil && *h.Protocol == corev1.HTTPProtocolHTTP2 {
		return transportH2C
	}
	return transport
}

func (t Target) httpGet(ctx context.Context, h *corev1.HTTPGetAction) error {
	addr, err := t.address(h.Host, h.Port)
	if err != nil {
		return err
	}
	u, err := url.Parse(h.Path)
	if err != nil { // Kubernetes uses what cannot be parsed as a plain path
		u = &url.URL{Path: h.Path}
	}
	if u.Path != "" && !strings.HasPrefix(u.Path, "/") {
		u.Path = "/" + u.Path
	}
	u.Scheme, u.Host = strings.ToLower(string(h.Scheme)), addr
	if u.Scheme == "" {
		u.Scheme = "http"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	setHeaders(req, h.HTTPHeaders)
	client := &http.Client{Transport: transportFor(h), CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if next.URL.Hostname() != via[0].URL.Hostname() {
			return errElsewhere
		}
		if len(via) >= maxRedirects {
			return fmt.Errorf("stopped after %d redirects", maxRedirects)
		}
		return nil
	}}
	resp, err := client.Do(req)
	if resp != nil {
		defer resp.Body.Close()
		io.Copy(io.Discard, io.LimitReader(resp.Body, maxOutput)) //nolint:errcheck // the code is the answer
	}
	switch {
	case errors.Is(err, errElsewhere):
		return nil
	case err != nil:
		return failed("%v", err)
	case resp.StatusCode < 200 || resp.StatusCode >= 400:
		return failed("HTTP probe failed with statuscode: %d", resp.StatusCode)
	}
	return nil
}

// setHeaders sets the headers that are asked for. An empty one takes a default one away.
func setHeaders(req *http.Request, list []corev1.HTTPHeader) {
	for _, h := range list {
		if strings.EqualFold(h.Name, "Host") {
			req.Host = h.Value
			continue
		}
		req.Header.Add(h.Name, h.Value)
	}
	for name, value := range map[string]string{"User-Agent": userAgent, "Accept": "*/*"} {
		switch given, there := req.Header[name]; {
		case !there:
			req.Header.Set(name, value)
		case name == "Accept" && len(given) == 1 && given[0] == "":
			req.Header.Del(name)
		}
	}
}

// grpcHealth asks by the standard health protocol.
func grpcHealth(ctx context.Context, addr, service string, mode corev1.GRPCProbeMode) error {
	creds := insecure.NewCredentials()
	if mode == corev1.GRPCProbeModeTLS {
		creds = credentials.NewTLS(anyServer)
	}
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(creds),
		grpc.WithUserAgent(userAgent), grpc.WithNoProxy())
	if err != nil {
		return err
	}
	defer conn.Close()
	resp, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: service})
	switch status.Code(err) {
	case codes.OK:
	case codes.Unimplemented:
		return failed("this server does not implement the grpc health protocol (grpc.health.v1.Health): %s", status.Convert(err).Message())
	case codes.DeadlineExceeded:
		return failed("timeout: health rpc did not complete in time")
	default:
		return failed("error: health rpc probe failed: %v", err)
	}
	if s := resp.GetStatus(); s != grpc_health_v1.HealthCheckResponse_SERVING {
		return failed("service unhealthy (responded with %q)", s)
	}
	return nil
}
