// Package servertest gives tests of the API server a kubelet: the real server over pods that the test brings. Only
// tests import it.
package servertest

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/apiserver/nodes"
	"minik8s/internal/certs"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/server"
)

// Start runs a kubelet's server until the test ends, with a certificate of ca for these node names, and returns its
// address.
func Start(t testing.TB, ca *certs.Authority, cfg server.Config, names ...string) (address string) {
	t.Helper()
	cfg.Cert, cfg.ClientCA = certs.Use(Cert(t)(ca.Server(t.TempDir(), "kubelet", names))), ca.Pool()
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.New(cfg).Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// Kubelets is the API server's transport to one kubelet, with these pods, that is the kubelet of every node named.
func Kubelets(t testing.TB, ca *certs.Authority, pods server.Pods, names ...string) http.RoundTripper {
	t.Helper()
	address := Start(t, ca, server.Config{Pods: func() server.Pods { return pods }}, names...)
	cert := Cert(t)(ca.Client(t.TempDir(), "client", "apiserver", "system:masters"))
	kubelets := nodes.Kubelets(func(context.Context, string) (string, error) { return address, nil }, certs.Use(cert), ca.Pool())
	t.Cleanup(kubelets.(*http.Transport).CloseIdleConnections)
	return kubelets
}

// Cert makes a certificate ready for use, or fails the test.
func Cert(t testing.TB) func(certs.Pair, error) tls.Certificate {
	return func(p certs.Pair, err error) tls.Certificate {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		cert, err := p.TLS()
		if err != nil {
			t.Fatal(err)
		}
		return cert
	}
}

// NoPods has nothing; tests embed it, and bring what they need.
type NoPods struct{}

var errNothing = errors.New("this test has no such thing")

var _ server.Pods = NoPods{}

// Pods implements server.Pods.
func (NoPods) Pods() []*corev1.Pod { return nil }

// VolumeDirs implements server.Pods.
func (NoPods) VolumeDirs(*corev1.Pod) map[string]string { return nil }

// Logs implements server.Pods.
func (NoPods) Logs(context.Context, string, string, string, *corev1.PodLogOptions) (io.ReadCloser, error) {
	return nil, errNothing
}

// Connectable implements server.Pods.
func (NoPods) Connectable(string, string, string) error { return errNothing }

// Exec implements server.Pods.
func (NoPods) Exec(context.Context, string, string, string, cri.ExecConfig) (int32, error) {
	return 0, errNothing
}

// Attach implements server.Pods.
func (NoPods) Attach(context.Context, string, string, string, cri.AttachConfig) error {
	return errNothing
}

// Dial implements server.Pods.
func (NoPods) Dial(context.Context, string, string, string, string) (net.Conn, error) {
	return nil, errNothing
}

// PortForward implements server.Pods.
func (NoPods) PortForward(context.Context, string, string, int32) (io.ReadWriteCloser, error) {
	return nil, errNothing
}
