package frontends

import (
	"strconv"

	networkingv1 "k8s.io/api/networking/v1"

	"minik8s/internal/gateway/routes"
)

// Controller is the value of spec.controller of the IngressClasses that the gateway serves.
const Controller = "minik8s.io/gateway"

// ClassName is the class that the annotation from before IngressClass names.
const ClassName = "minik8s"

// Serves says whether the gateway serves an Ingress. One that names no class is served unless another controller's class is
// the default.
func Serves(ing *networkingv1.Ingress, classes []*networkingv1.IngressClass) bool {
	if name := ing.Spec.IngressClassName; name != nil {
		for _, c := range classes {
			if c.Name == *name {
				return c.Spec.Controller == Controller
			}
		}
		return false
	}
	if name, ok := ing.Annotations["kubernetes.io/ingress.class"]; ok {
		return name == ClassName
	}
	others := false
	for _, c := range classes {
		if c.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true" {
			if c.Spec.Controller == Controller {
				return true
			}
			others = true
		}
	}
	return !others
}

// FromIngress is what an Ingress wants at the gateway's own addresses, if the gateway serves it.
func FromIngress(ing *networkingv1.Ingress, classes ...*networkingv1.IngressClass) (out routes.Set) {
	if !Serves(ing, classes) {
		return out
	}
	owner := routes.Owner{Kind: "Ingress", Namespace: ing.Namespace, Name: ing.Name, Created: ing.CreationTimestamp.Time}
	roots := map[string]bool{} // hosts whose / is taken
	add := func(host, path string, match routes.Match, to *networkingv1.IngressBackend) {
		if to == nil || to.Service == nil { // a resource is of a kind that we do not have
			return
		}
		port := to.Service.Port.Name
		if port == "" {
			port = strconv.Itoa(int(to.Service.Port.Number))
		}
		roots[host] = roots[host] || path == "/" && match == routes.Prefix
		out.Routes = append(out.Routes, routes.Route{Host: host, Path: path, Match: match, Owner: owner,
			Backend: routes.Backend{Namespace: ing.Namespace, Service: to.Service.Name, Port: port}})
	}
	for _, rule := range ing.Spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		for _, p := range rule.HTTP.Paths {
			match, path := routes.Prefix, p.Path
			if p.PathType != nil && *p.PathType == networkingv1.PathTypeExact {
				match = routes.Exact
			}
			if path == "" {
				path = "/"
			}
			add(rule.Host, path, match, &p.Backend)
		}
	}
	if ing.Spec.DefaultBackend != nil {
		hosts := []string{""}
		for _, rule := range ing.Spec.Rules { // before the default of another Ingress
			hosts = append(hosts, rule.Host)
		}
		for _, h := range hosts {
			if !roots[h] {
				add(h, "/", routes.Prefix, ing.Spec.DefaultBackend)
			}
		}
	}
	for _, t := range ing.Spec.TLS {
		if t.SecretName == "" {
			continue
		}
		hosts := t.Hosts
		if len(hosts) == 0 {
			hosts = []string{""}
		}
		for _, h := range hosts {
			out.Certificates = append(out.Certificates, routes.Certificate{Host: h, Owner: owner,
				Secret: routes.SecretName{Namespace: ing.Namespace, Name: t.SecretName}})
		}
	}
	return out
}
