package nodes

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"

	"github.com/labstack/echo/v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/apiserver/proxy"
)

// PodProxy forwards a request to a port of a pod; path is the part of the request's path that the pod gets.
func (h *Handler) PodProxy(w *echo.Response, req *http.Request, pod *corev1.Pod, scheme string, port int32, path string) error {
	dial := h.Dial
	if dial == nil {
		dial = ByAddress
	}
	p := proxy.Proxy{Scheme: scheme, Host: hostPort(cmp.Or(pod.Status.PodIP, pod.Name), port), Path: path, WriteTimeout: h.WriteTimeout, Log: h.Log,
		Dial: func(ctx context.Context) (io.ReadWriteCloser, error) { return dial(ctx, pod, port) }}
	return p.Serve(w, req)
}

// NodeProxy forwards a request to a node. If no port is given, or the kubelet's, it goes to the kubelet, which takes it as
// one of the API server; at another port the API server is a client like any other.
func (h *Handler) NodeProxy(w *echo.Response, req *http.Request, node *corev1.Node, target proxy.Target, path string) error {
	port, err := target.Number()
	if err != nil {
		return err
	}
	p := proxy.Proxy{Path: path, WriteTimeout: h.WriteTimeout, Log: h.Log}
	if port == 0 || port == node.Status.DaemonEndpoints.KubeletEndpoint.Port {
		if err := h.reachable(node.Name); err != nil {
			return err
		}
		p.Scheme, p.Host, p.Transport = "https", node.Name, h.Kubelets
		return p.Serve(w, req)
	}
	addr, err := nodeAddress(node)
	if err != nil {
		return err
	}
	p.Scheme, p.Host = target.Scheme, hostPort(addr.String(), port)
	p.Dial = func(ctx context.Context) (io.ReadWriteCloser, error) { return dialTCP(ctx, addr, port) }
	return p.Serve(w, req)
}

func nodeAddress(node *corev1.Node) (netip.Addr, error) {
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return proxyable("node "+node.Name, a.Address)
		}
	}
	return netip.Addr{}, apierrors.NewBadRequest("node " + node.Name + " has no address yet")
}

// ByAddress connects to a port of a pod by the pod's address, as other clients in the cluster do.
func ByAddress(ctx context.Context, pod *corev1.Pod, port int32) (io.ReadWriteCloser, error) {
	addr, err := proxyable("pod "+pod.Name, pod.Status.PodIP)
	if err != nil {
		return nil, err
	}
	return dialTCP(ctx, addr, port)
}

// proxyable reads an address to which the API server may connect for others. A forged status must not lead it to itself
// (loopback) or to what only its machine reaches (link-local). The error is 400.
func proxyable(of, text string) (netip.Addr, error) {
	if text == "" {
		return netip.Addr{}, apierrors.NewBadRequest(of + " has no address yet")
	}
	addr, err := netip.ParseAddr(text)
	if err != nil || !addr.IsGlobalUnicast() || addr.Zone() != "" {
		return netip.Addr{}, apierrors.NewBadRequest(fmt.Sprintf("%s has an address to which the API server does not connect: %s", of, text))
	}
	return addr, nil
}

func hostPort(host string, port int32) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }

func dialTCP(ctx context.Context, addr netip.Addr, port int32) (io.ReadWriteCloser, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", hostPort(addr.String(), port))
}
