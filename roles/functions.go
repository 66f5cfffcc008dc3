package roles

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/aggregation"
	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/function"
	"minik8s/internal/gpu"
	"minik8s/internal/imageregistry"
	"minik8s/internal/kubelet/containerd/image"
	"minik8s/internal/registry"
)

// functionParts are what every master has of functions.
type functionParts struct {
	registry *imageregistry.Registry
	images   *function.Images
	server   *function.Server
}

// makeFunctions makes them, when the registry of objects is there.
func (d *Daemon) makeFunctions() {
	part := d.as(registry.Part(function.ControllerName))
	f := &d.functions
	f.registry = imageregistry.New(imageregistry.Config{Dir: d.path("registry"), Log: d.log, Missing: func(ctx context.Context, repository, digest string) {
		f.images.Missing(ctx, repository, digest)
	}})
	f.images = function.NewImages(part, d.path("functions"), d.cfg.FunctionBase, f.registry,
		function.Elsewhere{Name: d.cfg.FunctionRegistry, AuthFile: d.cfg.RegistryAuthFile, Insecure: d.cfg.InsecureRegistries}, d.log)
	f.server = function.NewServer(part, function.Config{Master: d.cfg.NodeName, Leader: d.leaderName, Other: d.otherAPI, Log: d.log})
}

// connectors answer the subresources that parts know of.
func (d *Daemon) connectors() map[string]aggregation.Connector {
	out := gpu.NewServer(d.as(registry.Part(gpu.ControllerName)), d.gpus()).Connectors()
	maps.Copy(out, d.functions.server.Connectors())
	return out
}

// otherAPI is the way to another master's API, as the administrator.
func (d *Daemon) otherAPI(ctx context.Context, name string) (string, http.RoundTripper, error) {
	node, err := client.Get[*corev1.Node](ctx, d.Client(), client.Key{Kind: api.Nodes, Name: name})
	if err != nil {
		return "", nil, err
	}
	address := node.Annotations[api.APIAddressAnnotation]
	if address == "" {
		return "", nil, fmt.Errorf("node %s: %w", name, function.ErrNoMaster)
	}
	return "https://" + address, d.callMasters(), nil
}

// callMasters is shared by all calls that go to other masters.
func (d *Daemon) callMasters() http.RoundTripper {
	d.mastersOnce.Do(func() { d.mastersWay = transport(d.ca.Pool(), d.creds.admin.ForClient) })
	return d.mastersWay
}

func transport(trust *x509.CertPool, identity func(*tls.CertificateRequestInfo) (*tls.Certificate, error)) *http.Transport {
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust, GetClientCertificate: identity, MinVersion: tls.VersionTLS12},
		DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext, MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second, DisableCompression: true}
}

// imageRegistries is the way to the cluster's own registry: by the API on this machine, as this node.
func (d *Daemon) imageRegistries() map[string]image.Way {
	way := lazyTransport{make: func() http.RoundTripper { return transport(d.creds.trust, d.creds.node.ForClient) }}
	return map[string]image.Way{function.RegistryHost: {Scheme: "https", Host: net.JoinHostPort(loopback, strconv.Itoa(d.cfg.APIPort)),
		Client: &http.Client{Transport: &way}}}
}

// callsAgain is after how long a port that another program has is tried again.
const callsAgain = 10 * time.Second

// runFunctionCalls answers calls of functions on a port of their own.
func (d *Daemon) runFunctionCalls(ctx context.Context, ready func()) error {
	ready()
	if d.cfg.FunctionAddress == "" {
		<-ctx.Done()
		return nil
	}
	l, err := d.listenPatiently(ctx, "functions cannot be called there; the API's way to them (functions/NAME/call) is open", "function-address", d.cfg.FunctionAddress)
	if err != nil {
		return nil // it ends
	}
	return function.Serve(ctx, l, d.functions.server)
}

// runFunctionDoor answers for the functions that have an address of their own.
func (d *Daemon) runFunctionDoor(ctx context.Context, ready func()) error {
	if d.cfg.FunctionPort == 0 {
		ready()
		<-ctx.Done()
		return nil
	}
	return function.NewDoor(d.functions.server, function.DoorConfig{Domain: d.cfg.ClusterDomain, Inside: d.inCluster, Home: d.namespaceOf,
		Listen: func(ctx context.Context) (net.Listener, error) {
			return d.listenPatiently(ctx, "functions cannot be called there; the API's way to them (functions/NAME/call) is open", "function-port", net.JoinHostPort(d.cfg.APIAddress, strconv.Itoa(d.cfg.FunctionPort)))
		}}).Run(ctx, ready)
}

// runRegistryPort serves the cluster's own registry of images on a port of its own, beside /v2/ of the API's.
func (d *Daemon) runRegistryPort(ctx context.Context, ready func()) error {
	ready()
	if d.cfg.RegistryAddress == "" {
		<-ctx.Done()
		return nil
	}
	l, err := d.listenPatiently(ctx, "images cannot be pushed and pulled there; below /v2/ of the API they can", "registry-address", d.cfg.RegistryAddress)
	if err != nil {
		return nil // it ends
	}
	return d.apiServer.ServeImages(ctx, l)
}

// listenPatiently opens a port; while another program has it, it tries again: that is no reason to do without the rest. without is
// what that means, and is said once.
func (d *Daemon) listenPatiently(ctx context.Context, without, setting, address string) (net.Listener, error) {
	for told := false; ; {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err == nil || ctx.Err() != nil {
			return l, err
		}
		if !told {
			d.log.Warn(without, setting, address, "error", err)
			told = true
		}
		select {
		case <-time.After(callsAgain):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// inCluster reports whether an address is a pod's, a node's or this machine's.
func (d *Daemon) inCluster(ctx context.Context, from netip.Addr) bool {
	if d.cfg.ClusterCIDR.Contains(from) || from.IsLoopback() {
		return true
	}
	nodes, _, err := client.All[*corev1.Node](ctx, d.Client(), api.Nodes, client.ListOptions{})
	if err != nil {
		return false
	}
	for _, n := range nodes {
		for _, a := range n.Status.Addresses {
			if at, err := netip.ParseAddr(a.Address); err == nil && at == from {
				return true
			}
		}
	}
	return false
}

// namespaceOf is that of the pod with an address of its own; empty: no pod has it.
func (d *Daemon) namespaceOf(ctx context.Context, at netip.Addr) string {
	pods, _, err := client.All[*corev1.Pod](ctx, d.Client(), api.Pods, client.ListOptions{})
	if err != nil {
		return ""
	}
	for _, p := range pods {
		if !p.Spec.HostNetwork && p.Status.PodIP == at.String() && p.Status.Phase == corev1.PodRunning {
			return p.Namespace
		}
	}
	return ""
}

// lazyTransport is made with the first request: the credentials come after the runtime.
type lazyTransport struct {
	make func() http.RoundTripper
	once sync.Once
	rt   http.RoundTripper
}

func (l *lazyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	l.once.Do(func() { l.rt = l.make() })
	return l.rt.RoundTrip(r)
}
