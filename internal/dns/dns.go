package dns

import (
	"bytes"
	"context"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/cache"
	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/hostdns"
	"minik8s/internal/informer"
)

// Config says what the DNS of a node is.
type Config struct {
	// Domain is the cluster's.
	Domain string
	// Hold has this machine have an address, from now on instead of the one before; the zero Addr: none. It is called from
	// Run, and may be called again with the same address.
	Hold func(netip.Addr) error
	// Held is the address that this machine has from an earlier run, for the time until the Service is known; the zero Addr:
	// none. Nil: there was no earlier run.
	Held func() netip.Addr
	// Answers, which may be nil, is called when names are answered at an address, and with the zero Addr when they are at none
	// any more, because the Service has gone; not twice in a row with the same.
	Answers func(netip.Addr)
	// ResolvConf is the file that names the servers that the machine itself asks. It is read again while there are questions.
	ResolvConf string
	// Asked says that the machine asks this server, too, by whichever way: it must not be asked in turn.
	Asked bool
	Log   *slog.Logger
}

// Server is the DNS of a node.
type Server struct {
	cfg      Config
	services *informer.Informer[*corev1.Service]
	slices   *informer.Informer[*discoveryv1.EndpointSlice]
	objects  *informer.Informer[*minik8s.DNS]
	changed  <-chan struct{}
	listed   chan struct{}
	late     atomic.Bool // the first lists take longer than anybody waits
	forward  *forwarder
	behind   func() ([]byte, error)     // the file with what systemd-resolved asks
	at       atomic.Pointer[netip.Addr] // where it answers; nil: nowhere
	handler  *handler
}

// New makes the DNS of a node; Run runs it and the informers, once.
func New(cfg Config, services *informer.Informer[*corev1.Service], slices *informer.Informer[*discoveryv1.EndpointSlice],
	objects *informer.Informer[*minik8s.DNS]) *Server {
	s := &Server{cfg: cfg, services: services, slices: slices, objects: objects, listed: make(chan struct{}), behind: hostdns.Uplinks}
	s.forward = &forwarder{servers: s.machines}
	kept := cache.New()
	kept.Next = s.forward
	s.handler = &handler{log: cfg.Log, chain: &cluster{domain: strings.ToLower(dns.Fqdn(cfg.Domain)), records: newRecords(services, slices, objects),
		listed: s.wait, next: &bound{next: kept}}}
	s.changed = services.Signal(func(old, now *corev1.Service) bool { return own(old) || own(now) })
	return s
}

// own reports whether a Service is the cluster's DNS.
func own(svc *corev1.Service) bool {
	return svc != nil && svc.Namespace == metav1.NamespaceSystem && svc.Name == api.DNSService
}

// Address is where the nodes answer, if svc is the Service of the cluster's DNS and its label says that they do.
func Address(svc *corev1.Service) netip.Addr {
	if !own(svc) || svc.Labels[proxyLabel] != api.DNSProxy {
		return netip.Addr{}
	}
	for _, a := range clusterIPs(svc) {
		if a.Is4() {
			return a
		}
	}
	return netip.Addr{}
}

// proxyLabel is the label of a Service that is not the proxy's.
const proxyLabel = "service.kubernetes.io/service-proxy-name"

// Service is the Service of the cluster's DNS, at an address.
func Service(at netip.Addr) *corev1.Service {
	ports := []corev1.ServicePort{{Name: "dns", Protocol: corev1.ProtocolUDP, Port: port}, {Name: "dns-tcp", Protocol: corev1.ProtocolTCP, Port: port}}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: api.DNSService, Labels: map[string]string{
			// kubectl cluster-info shows Services with these two; tools find the DNS by the third.
			"kubernetes.io/cluster-service": "true", "kubernetes.io/name": "DNS", "k8s-app": "kube-dns", proxyLabel: api.DNSProxy}},
		Spec: corev1.ServiceSpec{ClusterIP: at.String(), Ports: ports},
	}
}

// machines are the servers that the machine asks, but for this one. Where the machine asks this one, systemd-resolved
// does so: then those behind it are asked directly.
func (s *Server) machines() []netip.AddrPort {
	text, err := os.ReadFile(s.cfg.ResolvConf)
	if err != nil {
		return nil // a machine without such a file asks nobody
	}
	rest := hostdns.Rest(text)
	out := s.named(rest)
	if !s.cfg.Asked && len(rest) == len(text) || slices.ContainsFunc(out, func(a netip.AddrPort) bool { return !a.Addr().IsLoopback() }) {
		return out
	}
	if behind, err := s.behind(); err == nil {
		return s.named(behind)
	}
	return out
}

// named are the servers of a file's text, but for this one.
func (s *Server) named(text []byte) (out []netip.AddrPort) {
	file, err := dns.ClientConfigFromReader(bytes.NewReader(text))
	if err != nil {
		return nil
	}
	own := s.at.Load()
	for _, text := range file.Servers {
		if a, err := netip.ParseAddr(text); err == nil && (own == nil || a != *own) {
			out = append(out, netip.AddrPortFrom(a, port))
		}
	}
	return out
}

// wait waits for the first lists, but not for long, and, where that was in vain once, not again: no master can be reached.
func (s *Server) wait(ctx context.Context) bool {
	select {
	case <-s.listed:
		return true
	default:
	}
	if s.late.Load() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, patience/2)
	defer cancel()
	select {
	case <-s.listed:
		return true
	case <-ctx.Done():
		s.late.Store(true)
		return false
	}
}

const (
	// port is where DNS is answered.
	port = 53
	// again is after how long a socket that could not be opened is tried again.
	again = time.Second
)

// Run answers until ctx ends. It is ready when it does.
func (s *Server) Run(ctx context.Context, ready func()) error {
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer s.forward.close()
	defer stop()
	all := []func(context.Context, func()) error{s.services.Run, s.slices.Run, s.objects.Run}
	failed, lists := make(chan error, len(all)), make(chan struct{}, len(all))
	for _, run := range all {
		running.Go(func() {
			if err := run(ctx, func() { lists <- struct{}{} }); err != nil {
				failed <- err
			}
		})
	}
	var at netip.Addr
	var sockets *server
	defer func() {
		if sockets != nil {
			sockets.close()
		}
	}()
	var retry <-chan time.Time
	held := false // whether this machine has what the first list says: an earlier run may have left another address
	reported := ""
	if s.cfg.Held != nil {
		at = s.cfg.Held()
	}
	var told *netip.Addr // nil: nothing
	tell := func() {
		if (sockets != nil || !at.IsValid()) && (told == nil || *told != at) && s.cfg.Answers != nil {
			told = new(at)
			s.cfg.Answers(at)
		}
	}
	if at.IsValid() {
		was := at
		s.at.Store(&was)
		var err error
		if sockets, err = listen(netip.AddrPortFrom(at, port), s.handler); err != nil { // it is tried again when the Service is known
			reported = err.Error()
			s.cfg.Log.Error("names are not resolved on this machine, trying again", "error", err)
		}
		tell()
	}
	for missing := len(all); ; {
		select {
		case <-lists:
			if missing--; missing == 0 {
				close(s.listed)
			}
		case <-s.changed:
		case <-retry:
		case err := <-failed:
			return err
		case <-ctx.Done():
			return nil
		}
		svc, ok := s.services.Get(metav1.NamespaceSystem, api.DNSService)
		if !ok && missing > 0 {
			continue // it may only not be known yet
		}
		retry = nil
		want := Address(svc)
		moved := want != at || sockets == nil && want.IsValid()
		if moved || !held && missing == 0 {
			if moved && sockets != nil {
				sockets.close()
				sockets = nil
			}
			at = want
			s.at.Store(&want)
			err := s.cfg.Hold(at)
			held = err == nil
			if err == nil && moved && at.IsValid() {
				sockets, err = listen(netip.AddrPortFrom(at, port), s.handler)
			}
			if err != nil {
				if err.Error() != reported {
					reported = err.Error()
					s.cfg.Log.Error("names are not resolved on this machine, trying again", "error", err)
				}
				retry = time.After(again)
				continue
			}
			reported = ""
		}
		tell()
		if missing == 0 && ready != nil { // without such a Service nothing waits for it
			ready()
			ready = nil
		}
	}
}
