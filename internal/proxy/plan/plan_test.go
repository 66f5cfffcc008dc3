package plan

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var node = Node{Name: "n1", Zone: "z1", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")}, Served: []netip.Addr{netip.MustParseAddr("10.96.0.10")},
	Kept: []netip.AddrPort{netip.MustParseAddrPort("198.18.0.2:6443")}}

func ptr[T any](x T) *T { return &x }

// endpoint reads "10.0.0.1 notready serving ending on=n1 node=n1 zone=z1".
func endpointFrom(text string) discoveryv1.Endpoint {
	words := strings.Fields(text)
	e := discoveryv1.Endpoint{Addresses: words[:1]}
	for _, w := range words[1:] {
		k, v, _ := strings.Cut(w, "=")
		switch k {
		case "notready":
			e.Conditions.Ready = ptr(false)
		case "serving":
			e.Conditions.Serving = ptr(true)
		case "ending":
			e.Conditions.Terminating = ptr(true)
		case "on":
			e.NodeName = &v
		case "zone", "node":
			if e.Hints == nil {
				e.Hints = &discoveryv1.EndpointHints{}
			}
			if k == "zone" {
				e.Hints.ForZones = append(e.Hints.ForZones, discoveryv1.ForZone{Name: v})
			} else {
				e.Hints.ForNodes = append(e.Hints.ForNodes, discoveryv1.ForNode{Name: v})
			}
		}
	}
	return e
}

func TestEndpoints(t *testing.T) {
	port := corev1.ServicePort{Name: "http", Port: 80}
	for name, c := range map[string]struct {
		list       []string
		all, local string
	}{
		"none":                                {},
		"conditions that are not said":        {list: []string{"10.0.0.2", "10.0.0.1 on=n1"}, all: "1 2", local: "1"},
		"not ready":                           {list: []string{"10.0.0.1 notready on=n1", "10.0.0.2"}, all: "2"},
		"not ready at all":                    {list: []string{"10.0.0.1 notready"}},
		"ending, another is ready":            {list: []string{"10.0.0.1 notready serving ending on=n1", "10.0.0.2"}, all: "2", local: "1"},
		"ending, and no other":                {list: []string{"10.0.0.1 notready serving ending on=n1", "10.0.0.2 notready ending"}, all: "1", local: "1"},
		"ending, another here is ready":       {list: []string{"10.0.0.1 notready serving ending on=n1", "10.0.0.2 on=n1"}, all: "2", local: "2"},
		"hints for this zone":                 {list: []string{"10.0.0.1 zone=z1", "10.0.0.2 zone=z2", "10.0.0.3 zone=z2 zone=z1 on=n1"}, all: "1 3", local: "3"},
		"hints for other zones":               {list: []string{"10.0.0.1 zone=z2", "10.0.0.2 zone=z2"}, all: "1 2"},
		"one has no hint":                     {list: []string{"10.0.0.1 zone=z1", "10.0.0.2"}, all: "1 2"},
		"one that is not ready has none":      {list: []string{"10.0.0.1 zone=z1", "10.0.0.2 zone=z2", "10.0.0.3 notready"}, all: "1"},
		"hints for this node":                 {list: []string{"10.0.0.1 node=n1 zone=z1 on=n1", "10.0.0.2 node=n2 zone=z1"}, all: "1", local: "1"},
		"hints for other nodes, and the zone": {list: []string{"10.0.0.1 node=n3 zone=z1", "10.0.0.2 node=n2 zone=z2"}, all: "1"},
		"local ones stay without a hint":      {list: []string{"10.0.0.1 zone=z1", "10.0.0.2 zone=z2 on=n1"}, all: "1", local: "2"},
		"of another family, and nonsense":     {list: []string{"2001:db8::1", "here"}},
		"twice":                               {list: []string{"10.0.0.1 notready on=n1", "10.0.0.1 on=n1", "10.0.0.1 notready"}, all: "1", local: "1"},
	} {
		s := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{
			{Name: ptr("other"), Port: ptr[int32](1)}, {Name: ptr("http"), Port: ptr[int32](80)}, {Name: ptr("http"), Protocol: ptr(corev1.ProtocolUDP), Port: ptr[int32](2)}}}
		for _, e := range c.list {
			s.Endpoints = append(s.Endpoints, endpointFrom(e))
		}
		all, local, _ := endpoints([]*discoveryv1.EndpointSlice{{AddressType: discoveryv1.AddressTypeIPv6, Ports: s.Ports}, s}, port, node)
		if got := digits(all) + "/" + digits(local); got != c.all+"/"+c.local {
			t.Errorf("%s: %s, want %s/%s", name, got, c.all, c.local)
		}
	}
}

func digits(list []netip.AddrPort) string {
	var out []string
	for _, a := range list {
		if a.Port() != 80 {
			return fmt.Sprint("the port ", a)
		}
		out = append(out, fmt.Sprint(a.Addr().As4()[3]))
	}
	return strings.Join(out, " ")
}

func TestOf(t *testing.T) {
	make := func(change func(*corev1.Service)) *corev1.Service {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP,
			ClusterIP: "10.96.0.1", Ports: []corev1.ServicePort{{Port: 80}}}}
		change(s)
		return s
	}
	balancer := func(s *corev1.Service, sources ...string) {
		s.Spec.Type, s.Spec.LoadBalancerSourceRanges = corev1.ServiceTypeLoadBalancer, sources
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "198.18.0.2"}, {IP: "198.18.0.3", IPMode: ptr(corev1.LoadBalancerIPModeProxy)}, {Hostname: "x"}}
	}
	base := Port{Name: "ns/web/tcp/80", Protocol: 6, Cluster: netip.MustParseAddrPort("10.96.0.1:80")}
	with := func(change func(*Port)) []Port { p := base; change(&p); return []Port{p} }
	at := func(list ...string) (out []netip.AddrPort) {
		for _, a := range list {
			out = append(out, netip.MustParseAddrPort(a))
		}
		return out
	}
	for name, c := range map[string]struct {
		svc  *corev1.Service
		want []Port
	}{
		"plain":                      {make(func(s *corev1.Service) {}), []Port{base}},
		"headless":                   {make(func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone }), nil},
		"not allocated yet":          {make(func(s *corev1.Service) { s.Spec.ClusterIP = "" }), nil},
		"an external name":           {make(func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName }), nil},
		"an address the node serves": {make(func(s *corev1.Service) { s.Spec.ClusterIP = "10.96.0.10" }), nil},
		"of both families": {make(func(s *corev1.Service) {
			s.Spec.ClusterIP, s.Spec.ClusterIPs = "2001:db8::1", []string{"2001:db8::1", "10.96.0.1"}
		}), []Port{base}},
		"a protocol nobody knows": {make(func(s *corev1.Service) { s.Spec.Ports[0].Protocol = "DCCP" }), nil},
		"affinity":                {make(func(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP }), with(func(p *Port) { p.Affinity = 3 * time.Hour })},
		"external addresses": {make(func(s *corev1.Service) {
			s.Spec.ExternalIPs = []string{"198.18.0.2", "127.0.0.1", "10.96.0.10", "198.18.0.1", "198.18.0.2"}
		}), with(func(p *Port) { p.External = at("198.18.0.1:80", "198.18.0.2:80") })},
		"a load balancer": {make(func(s *corev1.Service) { balancer(s) }), with(func(p *Port) { p.External = at("198.18.0.2:80") })},
		"a load balancer for nobody that is here": {make(func(s *corev1.Service) { balancer(s, "2001:db8::/32") }), with(func(p *Port) {
			p.Guarded, p.Sources = at("198.18.0.2:80"), []netip.Prefix{nobody}
		})},
		"a machine's own port": {make(func(s *corev1.Service) { balancer(s); s.Spec.Ports[0].Port = 6443 }), with(func(p *Port) {
			p.Name, p.Cluster = "ns/web/tcp/6443", netip.MustParseAddrPort("10.96.0.1:6443")
		})},
		"a load balancer for all": {make(func(s *corev1.Service) { balancer(s, "203.0.113.0/24", "0.0.0.0/0") }), with(func(p *Port) { p.External = at("198.18.0.2:80") })},
		"a load balancer for some": {make(func(s *corev1.Service) { balancer(s, " 203.0.113.7/24") }), with(func(p *Port) {
			p.Guarded, p.Sources = at("198.18.0.2:80"), []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}
		})},
		"a load balancer for the node": {make(func(s *corev1.Service) { balancer(s, "192.0.2.0/24") }), with(func(p *Port) {
			p.Guarded, p.Sources = at("198.18.0.2:80"), []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.18.0.2/32")}
		})},
		"local": {make(func(s *corev1.Service) {
			s.Spec.ExternalTrafficPolicy, s.Spec.InternalTrafficPolicy = "Local", ptr(corev1.ServiceInternalTrafficPolicyLocal)
		}), with(func(p *Port) { p.ExternalLocal, p.InternalLocal = true, true })},
	} {
		if got := Of(c.svc, nil, node); !reflect.DeepEqual(got.Ports, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got.Ports, c.want)
		}
	}
	s := make(func(s *corev1.Service) {
		balancer(s)
		s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = "Local", 30999
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "more", Port: 81})
	})
	slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: ptr[int32](8080)}, {Name: ptr("more"), Port: ptr[int32](8081)}},
		Endpoints: []discoveryv1.Endpoint{endpointFrom("10.0.0.1 on=n1"), endpointFrom("10.0.0.2 on=n1"), endpointFrom("10.0.0.3")}}
	if got := Of(s, []*discoveryv1.EndpointSlice{slice}, node); got.HealthPort != 30999 || got.Local != 2 || len(got.Ports[1].Endpoints) != 3 {
		t.Errorf("health: %+v", got)
	}
	// Pods of a rollout that is about to end here still serve who comes, and whoever balances sends nobody any more.
	slice.Endpoints = []discoveryv1.Endpoint{endpointFrom("10.0.0.1 on=n1 notready serving ending"), endpointFrom("10.0.0.3")}
	if got := Of(s, []*discoveryv1.EndpointSlice{slice}, node); got.Local != 0 || len(got.Ports[0].Local) != 1 {
		t.Errorf("health while the last ones end: %+v", got)
	}
}
