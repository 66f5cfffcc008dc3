package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/conntrack"
	"minik8s/internal/proxy/report"
)

// attemptTime is how long a connection or an answer may take. It is more than one retransmission, which comes after 1 s.
const attemptTime = 2500 * time.Millisecond

// service says what this node does with connections to a Service.
func (s *Server) service(w http.ResponseWriter, req *http.Request, _ Pods) error {
	var from netip.Addr
	if text := req.URL.Query().Get("from"); text != "" {
		var err error
		if from, err = netip.ParseAddr(text); err != nil || !from.Is4() {
			return apierrors.NewBadRequest("from: expected the IPv4 address of a pod, got " + text)
		}
	}
	var proxy Services
	if s.cfg.Services != nil {
		proxy = s.cfg.Services()
	}
	if proxy == nil {
		return apierrors.NewServiceUnavailable("the proxy of node " + s.cfg.NodeName + " does not run")
	}
	send(w, http.StatusOK, proxy.Inspect(req.PathValue("namespace"), req.PathValue("name"), from))
	return nil
}

// target reads the address that is to be tried.
func target(req *http.Request) (netip.AddrPort, error) {
	text := req.URL.Query().Get("address")
	at, err := netip.ParseAddrPort(text)
	if err != nil || at.Port() == 0 {
		return at, apierrors.NewBadRequest("address: expected an address and a port like 10.96.0.1:80, got " + text)
	}
	return at, nil
}

// dial connects once from within a pod's network, sends nothing, and says what came of it.
func (s *Server) dial(w http.ResponseWriter, req *http.Request, pods Pods) error {
	at, err := target(req)
	if err != nil {
		return err
	}
	if n := req.URL.Query().Get("network"); n != "tcp" {
		return apierrors.NewBadRequest("network: expected tcp, got " + n + ": of others nobody can know whether they connect")
	}
	ctx, cancel := context.WithTimeout(req.Context(), attemptTime)
	defer cancel()
	began := time.Now()
	conn, err := pods.Dial(ctx, req.PathValue("namespace"), req.PathValue("pod"), "tcp", at.String())
	out, err := attempt(began, err)
	if err != nil {
		return err
	}
	if out.Done {
		defer conn.Close() //nolint:errcheck // nothing was written to it
		if from, ok := conn.LocalAddr().(*net.TCPAddr); ok && at.Addr().Is4() {
			if flow, ok, err := conntrack.Find(unix.IPPROTO_TCP, unmapped(from.AddrPort()), at); err == nil && ok {
				out.Server = flow.Server
			}
		}
	}
	send(w, http.StatusOK, out)
	return nil
}

func unmapped(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

// lookup asks a DNS server from within a pod's network.
func (s *Server) lookup(w http.ResponseWriter, req *http.Request, pods Pods) error {
	at, err := target(req)
	if err != nil {
		return err
	}
	name := req.URL.Query().Get("name")
	switch {
	case strings.HasSuffix(name, ".svc"):
		name += "." + s.cfg.ClusterDomain + "."
	case name == "" || !strings.HasSuffix(name, "."):
		return apierrors.NewBadRequest("name: expected a host name that ends with a dot, or with .svc, got " + name)
	}
	ctx, cancel := context.WithTimeout(req.Context(), attemptTime)
	defer cancel()
	var missing atomic.Pointer[error]
	r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		conn, err := pods.Dial(ctx, req.PathValue("namespace"), req.PathValue("pod"), network, at.String())
		if _, api := err.(apierrors.APIStatus); api {
			missing.Store(&err)
		}
		return conn, err
	}}
	began := time.Now()
	found, err := r.LookupNetIP(ctx, "ip4", name)
	if err := missing.Load(); err != nil {
		return *err
	}
	out, err := attempt(began, err)
	if err != nil {
		return err
	}
	out.Name, out.Asked, out.Addresses = name, at, found
	send(w, http.StatusOK, out)
	return nil
}

// attempt says what came of something. The error is one about the pod, which was not tried then.
func attempt(began time.Time, err error) (report.Attempt, error) {
	out := report.Attempt{Done: err == nil, Micros: time.Since(began).Microseconds()}
	if err == nil {
		return out, nil
	}
	if _, api := err.(apierrors.APIStatus); api {
		return out, err
	}
	var late net.Error
	out.Error = err.Error()
	out.Refused = errors.Is(err, syscall.ECONNREFUSED)
	out.Late = errors.Is(err, context.DeadlineExceeded) || errors.As(err, &late) && late.Timeout()
	return out, nil
}
