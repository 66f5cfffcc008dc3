package frontends

import (
	"net/netip"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/gateway/routes"
)

func ptr[T any](x T) *T { return &x }

func backend(name string, port int32) networkingv1.IngressBackend {
	return networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: name, Port: networkingv1.ServiceBackendPort{Number: port}}}
}

func class(name, controller string, isDefault bool) *networkingv1.IngressClass {
	c := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.IngressClassSpec{Controller: controller}}
	if isDefault {
		c.Annotations = map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"}
	}
	return c
}

func TestServes(t *testing.T) {
	ours, nginx := class("web", Controller, false), class("nginx", "k8s.io/ingress-nginx", false)
	for name, c := range map[string]struct {
		class, annotation string
		classes           []*networkingv1.IngressClass
		want              bool
	}{
		"no class at all":                    {want: true},
		"our class":                          {class: "web", classes: []*networkingv1.IngressClass{nginx, ours}, want: true},
		"another's class":                    {class: "nginx", classes: []*networkingv1.IngressClass{nginx, ours}},
		"a class that does not exist":        {class: "gone", classes: []*networkingv1.IngressClass{ours}},
		"no class, no default":               {classes: []*networkingv1.IngressClass{nginx, ours}, want: true},
		"no class, another's is the default": {classes: []*networkingv1.IngressClass{class("nginx", "k8s.io/ingress-nginx", true), ours}},
		"no class, ours is the default":      {classes: []*networkingv1.IngressClass{class("a", Controller, true)}, want: true},
		"the old annotation":                 {annotation: ClassName, want: true},
		"the old annotation of another":      {annotation: "nginx"},
	} {
		ing := &networkingv1.Ingress{}
		if c.class != "" {
			ing.Spec.IngressClassName = &c.class
		}
		if c.annotation != "" {
			ing.Annotations = map[string]string{"kubernetes.io/ingress.class": c.annotation}
		}
		if got := Serves(ing, c.classes); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// leads is where a table of an Ingress leads requests.
func leads(t *testing.T, set routes.Set, want map[[2]string]string) {
	t.Helper()
	table := routes.New(set)
	for request, to := range want {
		got := ""
		if r := table.Find(netip.MustParseAddr("192.0.2.1"), request[0], request[1]); r != nil {
			got = r.Backend.Service + ":" + r.Backend.Port
		}
		if got != to {
			t.Errorf("%s%s leads to %q, want %q", request[0], request[1], got, to)
		}
	}
}

func TestFromIngress(t *testing.T) {
	path := func(path string, kind networkingv1.PathType, to networkingv1.IngressBackend) networkingv1.HTTPIngressPath {
		return networkingv1.HTTPIngressPath{Path: path, PathType: &kind, Backend: to}
	}
	rule := func(host string, paths ...networkingv1.HTTPIngressPath) networkingv1.IngressRule {
		return networkingv1.IngressRule{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: paths}}}
	}
	named := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "named", Port: networkingv1.ServiceBackendPort{Name: "http"}}}
	ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}, Spec: networkingv1.IngressSpec{
		DefaultBackend: ptr(backend("rest", 80)),
		Rules: []networkingv1.IngressRule{
			rule("a.example", path("/", networkingv1.PathTypePrefix, backend("root", 80)), path("/api", networkingv1.PathTypeExact, backend("api", 8080))),
			rule("*.wild.example", path("/v1", networkingv1.PathTypeImplementationSpecific, named)),
			rule("r.example", path("/", networkingv1.PathTypePrefix, networkingv1.IngressBackend{})),
			{Host: "bare.example"},
		},
		TLS: []networkingv1.IngressTLS{{Hosts: []string{"a.example", "*.wild.example"}, SecretName: "cert"}, {Hosts: []string{"none.example"}}, {SecretName: "all"}},
	}}
	set := FromIngress(ing)
	leads(t, set, map[[2]string]string{
		{"a.example", "/"}: "root:80", {"a.example", "/api"}: "api:8080", {"a.example", "/api/x"}: "root:80",
		{"x.wild.example", "/v1/x"}: "named:http", {"x.wild.example", "/v2"}: "rest:80", {"y.x.wild.example", "/v1"}: "rest:80",
		{"bare.example", "/x"}: "rest:80", {"else", "/"}: "rest:80", {"", "/"}: "rest:80", {"r.example", "/"}: "rest:80",
	})
	table := routes.New(set)
	for name, want := range map[string]string{"a.example": "cert", "b.wild.example": "cert", "none.example": "all"} {
		if got, _ := table.Certificate(netip.Addr{}, name); got != (routes.SecretName{Namespace: "ns", Name: want}) {
			t.Errorf("the certificate of %s: %v", name, got)
		}
	}
	if len(table.Conflicts()) > 0 {
		t.Errorf("an Ingress is in its own way: %+v", table.Conflicts())
	}
	ing.Spec.IngressClassName = ptr("other")
	if got := FromIngress(ing); len(got.Routes)+len(got.Certificates) > 0 {
		t.Errorf("of another class: %+v", got)
	}
	old := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, Spec: networkingv1.IngressSpec{DefaultBackend: ptr(backend("older", 80))}}
	ing.Spec.IngressClassName = nil
	set.Routes = append(set.Routes, FromIngress(old).Routes...)
	leads(t, set, map[[2]string]string{{"else", "/"}: "older:80", {"x.wild.example", "/v2"}: "rest:80"})
}
