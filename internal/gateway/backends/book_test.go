package backends

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func ptr[T any](x T) *T { return &x }

// slice reads endpoints "10.0.0.1 notready serving ending".
func slice(port string, number int32, endpoints ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &port, Port: &number}}}
	for _, text := range endpoints {
		words := strings.Fields(text)
		e := discoveryv1.Endpoint{Addresses: words[:1]}
		for _, w := range words[1:] {
			switch w {
			case "notready":
				e.Conditions.Ready = ptr(false)
			case "serving":
				e.Conditions.Serving = ptr(true)
			case "ending":
				e.Conditions.Terminating = ptr(true)
			}
		}
		s.Endpoints = append(s.Endpoints, e)
	}
	return s
}

func service(ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}, Spec: corev1.ServiceSpec{Ports: ports}}
}

var web = Name{"ns", "web"}

// all are the addresses of a pool, by one request that is refused everywhere.
func all(p *Pool) string {
	var out []string
	turn := p.Turn(netip.Addr{})
	for e := turn.Next(); e != nil; e = turn.Next() {
		out = append(out, e.Address)
	}
	return strings.Join(out, " ")
}

func TestPlan(t *testing.T) {
	http := corev1.ServicePort{Name: "http", Port: 80}
	for name, c := range map[string]struct {
		port  string
		svc   *corev1.Service
		list  []*discoveryv1.EndpointSlice
		want  string
		why   string
		speak Protocol
	}{
		"by number":             {port: "80", svc: service(http), list: []*discoveryv1.EndpointSlice{slice("http", 8080, "10.0.0.2", "10.0.0.1")}, want: "10.0.0.1:8080 10.0.0.2:8080"},
		"by name":               {port: "http", svc: service(http), list: []*discoveryv1.EndpointSlice{slice("http", 8080, "10.0.0.1"), slice("other", 1, "10.0.0.9")}, want: "10.0.0.1:8080"},
		"in two slices":         {port: "80", svc: service(http), list: []*discoveryv1.EndpointSlice{slice("http", 80, "10.0.0.1"), slice("http", 80, "10.0.0.1")}, want: "10.0.0.1:80"},
		"ending, another ready": {port: "80", svc: service(http), list: []*discoveryv1.EndpointSlice{slice("http", 80, "10.0.0.1 notready serving ending", "10.0.0.2")}, want: "10.0.0.2:80"},
		"ending, no other":      {port: "80", svc: service(http), list: []*discoveryv1.EndpointSlice{slice("http", 80, "10.0.0.1 notready serving ending", "10.0.0.2 notready")}, want: "10.0.0.1:80"},
		"none ready":            {port: "80", svc: service(http), list: []*discoveryv1.EndpointSlice{slice("http", 80, "10.0.0.2 notready")}, why: "Service ns/web has no endpoint that is ready."},
		"no such port":          {port: "81", svc: service(http), why: "Service ns/web has no TCP port 81."},
		"a UDP port":            {port: "80", svc: service(corev1.ServicePort{Port: 80, Protocol: corev1.ProtocolUDP}), why: "Service ns/web has no TCP port 80."},
		"no Service":            {port: "80", why: "Service ns/web does not exist."},
		"an external name": {port: "8080", svc: &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "a.example"}},
			want: "a.example:8080"},
		"gRPC": {port: "80", svc: service(corev1.ServicePort{Port: 80, AppProtocol: ptr("kubernetes.io/h2c")}), list: []*discoveryv1.EndpointSlice{slice("", 80, "10.0.0.1")},
			want: "10.0.0.1:80", speak: H2C},
		"TLS": {port: "80", svc: service(corev1.ServicePort{Port: 80, AppProtocol: ptr("https")}), list: []*discoveryv1.EndpointSlice{slice("", 80, "10.0.0.1")},
			want: "10.0.0.1:80", speak: HTTPS},
	} {
		b := NewBook()
		port := Port{Service: web, Port: c.port}
		if fresh := b.Want([]Port{port}); len(fresh) != 1 || fresh[0] != web {
			t.Errorf("%s: %v is new", name, fresh)
		}
		b.Set(web, c.svc, c.list)
		p := b.Pool(port)
		if got := all(p); got != c.want || p.Why() != c.why || p.Protocol() != c.speak {
			t.Errorf("%s: %s (%s), %v", name, got, p.Why(), p.Protocol())
		}
	}
}

func TestEndpointsAreShared(t *testing.T) {
	b := NewBook()
	var gone []string
	b.Gone = func(e *Endpoint) { gone = append(gone, e.Address) }
	byName, byNumber, address := Port{Service: web, Port: "http"}, Port{Service: web, Port: "80"}, Port{Address: netip.MustParseAddrPort("10.0.0.1:80")}
	b.Want([]Port{byName, byNumber, address})
	svc := service(corev1.ServicePort{Name: "http", Port: 80})
	b.Set(web, svc, []*discoveryv1.EndpointSlice{slice("http", 80, "10.0.0.1", "10.0.0.2")})
	turn := b.Pool(byName).Turn(netip.Addr{})
	first := turn.Next()
	first.Failed()
	turn = b.Pool(byNumber).Turn(netip.Addr{})
	if e := turn.Next(); e.Address == first.Address {
		t.Error("another pool has not learned of a failure")
	}
	b.Set(web, svc, []*discoveryv1.EndpointSlice{slice("http", 80, "10.0.0.2")})
	if len(gone) > 0 {
		t.Errorf("%v is still an address of a route", gone)
	}
	b.Want([]Port{byName, byNumber})
	if strings.Join(gone, " ") != "10.0.0.1:80" {
		t.Errorf("gone: %v", gone)
	}
	if b.Want([]Port{byName, byNumber}) != nil || !b.Wanted(web) {
		t.Error("a Service is new twice")
	}
	b.Want(nil)
	if len(gone) != 2 || b.Wanted(web) || len(b.endpoints) > 0 {
		t.Errorf("gone: %v, left: %v", gone, b.endpoints)
	}
}

func TestTurns(t *testing.T) {
	b := NewBook()
	port := Port{Service: web, Port: "80"}
	b.Want([]Port{port})
	b.Set(web, service(corev1.ServicePort{Port: 80}), []*discoveryv1.EndpointSlice{slice("", 80, "10.0.0.1", "10.0.0.2", "10.0.0.3")})
	p := b.Pool(port)
	count := map[string]int{}
	var some *Endpoint
	for range 30 {
		turn := p.Turn(netip.Addr{})
		some = turn.Next()
		count[some.Address]++
	}
	for a, n := range count {
		if n != 10 {
			t.Errorf("%s had %d turns of 30", a, n)
		}
	}
	some.Failed()
	for range 6 {
		turn := p.Turn(netip.Addr{})
		if turn.Next() == some {
			t.Fatal("an endpoint that failed is not skipped")
		}
	}
	if got := strings.Fields(all(p)); len(got) != 3 || got[2] != some.Address {
		t.Errorf("the one that failed is not tried last: %v", got)
	}
	some.until.Store(1) // long ago
	if a, b := some.usable(), some.usable(); !a || b {
		t.Errorf("tried again by one request at a time: %v %v", a, b)
	}
	some.Worked()
	if !some.usable() {
		t.Error("skipped though it works")
	}
}

// A pool remembers a client for as long as the Service says; then its address alone chooses, as it does where nothing is remembered.
func TestClients(t *testing.T) {
	list := []*Endpoint{{Address: "a"}, {Address: "b"}, {Address: "c"}}
	var c clients
	client := netip.MustParseAddr("10.0.0.7")
	at := func(list []*Endpoint, lasts time.Duration) string { return list[c.of(client, list, lasts)].Address }
	first := at(list, time.Hour)
	if again := new(clients); list[again.of(client, list, time.Hour)].Address != first {
		t.Error("another gateway chooses otherwise")
	}
	var without []*Endpoint // an endpoint that the address would not choose
	for _, e := range list {
		if e.Address != first {
			without = append(without, e)
		}
	}
	second := at(without, time.Hour)
	if second == first || at(list, time.Hour) != second {
		t.Error("it does not stay where it is")
	}
	at(list, -1) // the last time, a moment ago
	if got := at(list, time.Hour); got != first {
		t.Errorf("%s, though it has not come for long", got)
	}
}
