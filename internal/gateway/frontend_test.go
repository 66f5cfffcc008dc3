package gateway

import (
	"net/netip"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/gateway/frontends"
)

// TestFrontEnds: DNS objects and Ingresses, whose classes change, side by side.
func TestFrontEnds(t *testing.T) {
	serve(t, "10.9.0.1", tell)
	b := &bed{T: t}
	var names kind[*minik8s.DNS]
	var ingresses kind[*networkingv1.Ingress]
	var classes kind[*networkingv1.IngressClass]
	b.start(func(c *Config) { c.Addresses = []netip.Addr{netip.MustParseAddr("10.8.2.1")} }, Names(&names), Ingresses(&ingresses, &classes))
	b.endpoints("10.9.0.1")
	check := func(address, url string, status int, first string) {
		t.Helper()
		b.settle()
		answer, text := do(t, browser(t, address), "GET", url, nil)
		if answer.StatusCode != status || first != "" && !strings.HasPrefix(text, first) {
			t.Errorf("%s: %s %s", url, answer.Status, text)
		}
	}
	dns := &minik8s.DNS{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hello"}, Spec: minik8s.DNSSpec{Host: "hello.world.minik8s", ServiceAddress: "10.8.2.2",
		Paths: []minik8s.DNSPath{{Path: "/world", Service: &minik8s.DNSServiceRef{Name: "web", Port: 80}}, {Path: "/new/world", Address: "http://10.7.0.9"}}}}
	names.put("default", "hello", dns, true)
	check("10.8.2.2", "http://hello.world.minik8s:80/world", 200, "GET / hello.world.minik8s:80")
	check("10.8.2.2", "http://hello.world.minik8s:80/new/world/x", 200, "GET /x hello.world.minik8s:80")
	ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: networkingv1.IngressSpec{
		IngressClassName: new(string), Rules: []networkingv1.IngressRule{{Host: "*.shop.example", IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
			Paths: []networkingv1.HTTPIngressPath{{Path: "/cart", Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web",
				Port: networkingv1.ServiceBackendPort{Number: 80}}}}}}}}}}}
	*ing.Spec.IngressClassName = "web"
	ingresses.put("default", "web", ing, true)
	b.settle()
	if n := len(b.g.Doors()); n != 2 {
		t.Errorf("%d doors with an Ingress of no class that is ours", n)
	}
	classes.put("", "web", &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: networkingv1.IngressClassSpec{Controller: frontends.Controller}}, true)
	check("10.8.2.1", "http://a.shop.example/cart/1", 200, "GET /cart/1 a.shop.example")
	check("10.8.2.1", "http://a.shop.example/", 404, "")
	check("10.8.2.1", "http://hello.world.minik8s/world", 404, "")
	names.put("default", "hello", dns, false)
	b.settle()
	if n := len(b.g.Doors()); n != 2 {
		t.Errorf("%d doors after the DNS object", n)
	}
}
