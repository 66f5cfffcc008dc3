package frontends

import (
	"net/netip"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/gateway/routes"
)

func TestFromDNS(t *testing.T) {
	dns := &minik8s.DNS{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "hello"}, Spec: minik8s.DNSSpec{Host: "hello.world.minik8s", ServiceAddress: "10.8.0.1",
		Paths: []minik8s.DNSPath{
			{Path: "/world", Service: &minik8s.DNSServiceRef{Name: "web", Port: 8080}},
			{Path: "/new/world/", Address: "http://10.6.0.1"},
			{Path: "/by/name", Address: "http://other:81"},
			{Path: "/bad", Address: "ftp://x"},
		}}}
	set := FromDNS(dns)
	want := []struct{ path, to string }{{"/world", "Service ns/web port 8080"}, {"/new/world", "10.6.0.1:80"}, {"/by/name", "Service ns/other port 81"}}
	if len(set.Routes) != len(want) {
		t.Fatalf("%+v", set.Routes)
	}
	for i, w := range want {
		r := set.Routes[i]
		if r.Path != w.path || r.Backend.String() != w.to || !r.Strip || r.Match != routes.Prefix || r.Host != dns.Spec.Host || r.Address != netip.MustParseAddr("10.8.0.1") ||
			r.Owner.String() != "DNS ns/hello" {
			t.Errorf("%+v, want %v", r, w)
		}
	}
	if dns.Spec.ServiceAddress = ""; len(FromDNS(dns).Routes) > 0 {
		t.Error("routes without an address")
	}
}
