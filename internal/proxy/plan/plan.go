package plan

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// Node is what is known of this node.
type Node struct {
	Name, Zone string
	Addresses  []netip.Addr // of the host
	// Served are addresses that the node itself answers, such as that of the cluster's DNS: a Service that has one of
	// them is left to whoever listens there.
	Served []netip.Addr
	// Kept are addresses and ports that no Service takes from whoever listens there: the machines' own, without which this
	// node would not even hear that the Service is gone.
	Kept []netip.AddrPort
}

// Service is what a Service needs on this node.
type Service struct {
	Ports []Port
	// HealthPort is the port of the node at which load balancers ask whether it has endpoints; 0: none.
	HealthPort uint16
	// Local is how many endpoints on this node get external connections.
	Local int
}

// Port is one port of a Service.
type Port struct {
	Name     string // of Service and port: default/web/tcp/http
	Protocol byte

	Cluster  netip.AddrPort   // invalid: none
	External []netip.AddrPort // external addresses, and those of load balancers
	// Guarded are those of a load balancer that only Sources may call.
	Guarded  []netip.AddrPort
	Sources  []netip.Prefix
	NodePort uint16 // 0: none

	Endpoints []netip.AddrPort // that get connections
	Local     []netip.AddrPort // those on this node: also ones that hints keep from Endpoints
	// InternalLocal and ExternalLocal are the traffic policies Local.
	InternalLocal, ExternalLocal bool
	Affinity                     time.Duration // for how long a client stays with an endpoint; 0: it does not
}

var protocols = map[corev1.Protocol]byte{corev1.ProtocolTCP: unix.IPPROTO_TCP, corev1.ProtocolUDP: unix.IPPROTO_UDP, corev1.ProtocolSCTP: unix.IPPROTO_SCTP, "": unix.IPPROTO_TCP}

// Of plans a Service with its slices. One without an address of its own needs nothing, nor does one that is left to another
// proxy by the label service.kubernetes.io/service-proxy-name.
func Of(svc *corev1.Service, slicesOf []*discoveryv1.EndpointSlice, node Node) Service {
	var out Service
	cluster, ok := clusterIP(svc)
	if _, others := svc.Labels[serviceProxyName]; !ok || others || slices.Contains(node.Served, cluster) {
		return out
	}
	base := Port{
		InternalLocal: svc.Spec.InternalTrafficPolicy != nil && *svc.Spec.InternalTrafficPolicy == corev1.ServiceInternalTrafficPolicyLocal,
		ExternalLocal: svc.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal,
		Affinity:      affinity(svc),
	}
	free := addresses(svc.Spec.ExternalIPs, node)
	guarded := balancerAddresses(svc, node)
	base.Sources = sources(svc, guarded, node)
	if len(base.Sources) == 0 {
		free, guarded = append(free, guarded...), nil
	}
	here := map[netip.Addr]bool{}
	for _, p := range svc.Spec.Ports {
		protocol, ok := protocols[p.Protocol]
		if !ok {
			continue
		}
		q := base
		q.Protocol, q.Name = protocol, name(svc, p)
		q.Cluster, q.NodePort = netip.AddrPortFrom(cluster, uint16(p.Port)), uint16(p.NodePort)
		q.External, q.Guarded = node.withPort(free, p.Port), node.withPort(guarded, p.Port)
		var isReady bool
		q.Endpoints, q.Local, isReady = endpoints(slicesOf, p, node)
		for _, e := range q.Local {
			if isReady { // who asks for the health sends others elsewhere while these end, as in Kubernetes
				here[e.Addr()] = true
			}
		}
		out.Ports = append(out.Ports, q)
	}
	if svc.Spec.Type == corev1.ServiceTypeLoadBalancer && base.ExternalLocal {
		out.HealthPort, out.Local = uint16(svc.Spec.HealthCheckNodePort), len(here)
	}
	return out
}

// name names a port in chains: it has only characters that the nft tool takes in names.
func name(svc *corev1.Service, p corev1.ServicePort) string {
	port := p.Name
	if port == "" {
		port = strconv.Itoa(int(p.Port))
	}
	protocol := "tcp"
	if p.Protocol != "" {
		protocol = strings.ToLower(string(p.Protocol))
	}
	return svc.Namespace + "/" + svc.Name + "/" + protocol + "/" + port
}

// serviceProxyName is the label of a Service that another proxy answers, as kube-proxy has it
// (k8s.io/kubernetes/pkg/proxy/apis/well_known_labels.go).
const serviceProxyName = "service.kubernetes.io/service-proxy-name"

func clusterIP(svc *corev1.Service) (netip.Addr, bool) {
	if svc.Spec.Type == corev1.ServiceTypeExternalName {
		return netip.Addr{}, false
	}
	for _, s := range append([]string{svc.Spec.ClusterIP}, svc.Spec.ClusterIPs...) {
		if a, err := netip.ParseAddr(s); err == nil && a.Is4() {
			return a, true
		}
	}
	return netip.Addr{}, false
}

func affinity(svc *corev1.Service) time.Duration {
	if svc.Spec.SessionAffinity != corev1.ServiceAffinityClientIP {
		return 0
	}
	if c := svc.Spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil && *c.ClientIP.TimeoutSeconds > 0 {
		return time.Duration(*c.ClientIP.TimeoutSeconds) * time.Second
	}
	return time.Duration(corev1.DefaultClientIPServiceAffinitySeconds) * time.Second
}

// addresses are the IPv4 ones of a list, each once, without those that the node serves itself.
func addresses(list []string, node Node) (out []netip.Addr) {
	for _, s := range list {
		a, err := netip.ParseAddr(s)
		if err == nil && a.Is4() && !a.IsLoopback() && !slices.Contains(node.Served, a) && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out
}

// balancerAddresses are those of a load balancer that nodes answer themselves.
func balancerAddresses(svc *corev1.Service, node Node) []netip.Addr {
	if svc.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return nil
	}
	var list []string
	for _, i := range svc.Status.LoadBalancer.Ingress {
		if i.IPMode == nil || *i.IPMode == corev1.LoadBalancerIPModeVIP {
			list = append(list, i.IP)
		}
	}
	return addresses(list, node)
}

// nobody is a source from which no packet comes.
var nobody = netip.MustParsePrefix("255.255.255.255/32")

// sources are who may call the load balancer; none: everybody. Where the node may, a connection of its own comes from the
// address that it calls if that is an address of the node.
func sources(svc *corev1.Service, balancer []netip.Addr, node Node) (out []netip.Prefix) {
	if svc.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return nil
	}
	own := false
	for _, s := range svc.Spec.LoadBalancerSourceRanges {
		p, err := netip.ParsePrefix(strings.TrimSpace(s))
		if err != nil || !p.Addr().Is4() {
			out = append(out, nobody) // what is given and cannot be met lets nobody in
			continue
		}
		if p = p.Masked(); p.Bits() == 0 {
			return nil
		}
		out = append(out, p)
		own = own || slices.ContainsFunc(node.Addresses, p.Contains)
	}
	if own {
		for _, a := range balancer {
			out = append(out, netip.PrefixFrom(a, 32))
		}
	}
	slices.SortFunc(out, func(a, b netip.Prefix) int { return a.Compare(b) })
	return slices.Compact(out)
}

// withPort are addresses with a port, without those that are kept.
func (n Node) withPort(list []netip.Addr, port int32) (out []netip.AddrPort) {
	for _, a := range list {
		if at := netip.AddrPortFrom(a, uint16(port)); !slices.Contains(n.Kept, at) {
			out = append(out, at)
		}
	}
	return out
}
