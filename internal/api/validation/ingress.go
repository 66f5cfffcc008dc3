package validation

import (
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
)

// Ingress checks an Ingress.
func Ingress(in *networkingv1.Ingress) field.ErrorList { return ingress(in, true) }

// IngressCreate checks what only a new Ingress must keep: the two ways to name its class agree.
func IngressCreate(in *networkingv1.Ingress) field.ErrorList {
	noted, ok := in.Annotations[api.IngressClassAnnotation]
	if class := in.Spec.IngressClassName; ok && class != nil && noted != *class {
		return field.ErrorList{field.Invalid(field.NewPath("annotations").Child(api.IngressClassAnnotation), noted, "must match `ingressClassName` when both are specified")}
	}
	return nil
}

// ingress checks an Ingress; secrets also the names of its Secrets.
func ingress(in *networkingv1.Ingress, secrets bool) field.ErrorList {
	var errs field.ErrorList
	s := &in.Spec
	if len(s.Rules) == 0 && s.DefaultBackend == nil {
		errs = append(errs, field.Invalid(spec, s.Rules, "either `defaultBackend` or `rules` must be specified"))
	}
	if s.DefaultBackend != nil {
		errs = append(errs, ingressBackend(s.DefaultBackend, spec.Child("defaultBackend"))...)
	}
	for i := range s.Rules {
		errs = append(errs, ingressRule(&s.Rules[i], spec.Child("rules").Index(i))...)
	}
	for i, t := range s.TLS {
		path := spec.Child("tls").Index(i)
		for j, host := range t.Hosts {
			errs = append(errs, hostOrPattern(path.Child("hosts").Index(j), host)...)
		}
		if t.SecretName != "" && secrets {
			errs = append(errs, say(path.Child("secretName"), t.SecretName, apivalidation.NameIsDNSSubdomain(t.SecretName, false))...)
		}
	}
	if class := s.IngressClassName; class != nil {
		errs = append(errs, say(spec.Child("ingressClassName"), *class, apivalidation.NameIsDNSSubdomain(*class, false))...)
	}
	return errs
}

// hostOrPattern checks a host name, of which the first label may be a star.
func hostOrPattern(path *field.Path, host string) field.ErrorList {
	if strings.Contains(host, "*") {
		return say(path, host, validation.IsWildcardDNS1123Subdomain(host))
	}
	return say(path, host, validation.IsDNS1123Subdomain(host))
}

func ingressRule(r *networkingv1.IngressRule, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if r.Host != "" {
		if isIP(r.Host) {
			errs = append(errs, field.Invalid(path.Child("host"), r.Host, "must be a DNS name, not an IP address"))
		}
		errs = append(errs, hostOrPattern(path.Child("host"), r.Host)...)
	}
	if r.HTTP == nil {
		return errs
	}
	paths := path.Child("http", "paths")
	if len(r.HTTP.Paths) == 0 {
		errs = append(errs, field.Required(paths, ""))
	}
	for i := range r.HTTP.Paths {
		errs = append(errs, ingressPath(&r.HTTP.Paths[i], paths.Index(i))...)
	}
	return errs
}

func ingressPath(p *networkingv1.HTTPIngressPath, path *field.Path) field.ErrorList {
	if p.PathType == nil {
		return field.ErrorList{field.Required(path.Child("pathType"), "pathType must be specified")}
	}
	var errs field.ErrorList
	switch *p.PathType {
	case networkingv1.PathTypeExact, networkingv1.PathTypePrefix:
		errs = append(errs, absolutePath(path.Child("path"), p.Path)...)
	case networkingv1.PathTypeImplementationSpecific:
		if p.Path != "" && !strings.HasPrefix(p.Path, "/") {
			errs = append(errs, field.Invalid(path.Child("path"), p.Path, "must be an absolute path"))
		}
	default:
		errs = append(errs, field.NotSupported(path.Child("pathType"), *p.PathType, []networkingv1.PathType{
			networkingv1.PathTypeExact, networkingv1.PathTypeImplementationSpecific, networkingv1.PathTypePrefix}))
	}
	return append(errs, ingressBackend(&p.Backend, path.Child("backend"))...)
}

func ingressBackend(b *networkingv1.IngressBackend, path *field.Path) field.ErrorList {
	switch {
	case b.Resource != nil && b.Service != nil:
		return field.ErrorList{field.Invalid(path, "", "cannot set both resource and service backends")}
	case b.Resource != nil:
		return objectReference(b.Resource.APIGroup, b.Resource.Kind, b.Resource.Name, path.Child("resource"))
	case b.Service == nil:
		return field.ErrorList{field.Invalid(path, "", "resource or service backend is required")}
	}
	at, port := path.Child("service"), b.Service.Port
	var errs field.ErrorList
	if b.Service.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), ""))
	} else {
		errs = append(errs, say(at.Child("name"), b.Service.Name, apivalidation.NameIsDNSLabel(b.Service.Name, false))...)
	}
	switch {
	case port.Name != "" && port.Number != 0:
		errs = append(errs, field.Invalid(path, "", "cannot set both port name & port number"))
	case port.Name != "":
		errs = append(errs, say(at.Child("port", "name"), port.Name, validation.IsValidPortName(port.Name))...)
	case port.Number != 0:
		errs = append(errs, say(at.Child("port", "number"), port.Number, validation.IsValidPortNum(int(port.Number)))...)
	default:
		errs = append(errs, field.Required(path, "port name or number is required"))
	}
	return errs
}

func objectReference(group *string, kind, name string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if group != nil {
		errs = append(errs, say(path.Child("apiGroup"), *group, validation.IsDNS1123Subdomain(*group))...)
	}
	for _, x := range []struct{ field, value string }{{"kind", kind}, {"name", name}} {
		if x.value == "" {
			errs = append(errs, field.Required(path.Child(x.field), ""))
		} else {
			errs = append(errs, say(path.Child(x.field), x.value, content.IsPathSegmentName(x.value))...)
		}
	}
	return errs
}

// IngressUpdate checks the change from old, whose names of Secrets may be odd if they were before.
func IngressUpdate(in, old *networkingv1.Ingress) field.ErrorList {
	secrets := true
	for _, t := range old.Spec.TLS {
		if t.SecretName != "" && len(apivalidation.NameIsDNSSubdomain(t.SecretName, false)) > 0 {
			secrets = false
		}
	}
	return ingress(in, secrets)
}

// IngressStatusUpdate checks the addresses at which an Ingress is reached.
func IngressStatusUpdate(in, old *networkingv1.Ingress) field.ErrorList {
	var errs field.ErrorList
	var known []string
	for _, at := range old.Status.LoadBalancer.Ingress {
		known = append(known, at.IP)
	}
	for i, at := range in.Status.LoadBalancer.Ingress {
		path := field.NewPath("status", "loadBalancer", "ingress").Index(i)
		if at.IP != "" {
			errs = append(errs, validation.IsValidIPForLegacyField(path.Child("ip"), at.IP, true, known)...)
		}
		if at.Hostname != "" {
			errs = append(errs, say(path.Child("hostname"), at.Hostname, validation.IsDNS1123Subdomain(at.Hostname))...)
			if isIP(at.Hostname) {
				errs = append(errs, field.Invalid(path.Child("hostname"), at.Hostname, "must be a DNS name, not an IP address"))
			}
		}
	}
	return errs
}

// IngressWarnings says what should be written otherwise.
func IngressWarnings(in *networkingv1.Ingress) []string {
	if _, ok := in.Annotations[api.IngressClassAnnotation]; ok && in.Spec.IngressClassName == nil {
		return []string{`annotation "` + api.IngressClassAnnotation + `" is deprecated, please use 'spec.ingressClassName' instead`}
	}
	return nil
}

// maxController is how long the name of a controller may be.
const maxController = 250

// IngressClass checks an IngressClass.
func IngressClass(c *networkingv1.IngressClass) field.ErrorList {
	var errs field.ErrorList
	path := spec.Child("controller")
	if len(c.Spec.Controller) > maxController {
		errs = append(errs, field.TooLong(path, "", maxController))
	}
	errs = append(errs, validation.IsDomainPrefixedPath(path, c.Spec.Controller)...)
	p := c.Spec.Parameters
	if p == nil {
		return errs
	}
	path = spec.Child("parameters")
	errs = append(errs, objectReference(p.APIGroup, p.Kind, p.Name, path)...)
	if p.Scope == nil {
		return append(errs, field.Required(path.Child("scope"), ""))
	}
	namespace := path.Child("namespace")
	switch *p.Scope {
	case networkingv1.IngressClassParametersReferenceScopeNamespace:
		if p.Namespace == nil {
			errs = append(errs, field.Required(namespace, "`parameters.scope` is set to 'Namespace'"))
		} else {
			errs = append(errs, say(namespace, *p.Namespace, apivalidation.ValidateNamespaceName(*p.Namespace, false))...)
		}
	case networkingv1.IngressClassParametersReferenceScopeCluster:
		if p.Namespace != nil {
			errs = append(errs, field.Forbidden(namespace, "`parameters.scope` is set to 'Cluster'"))
		}
	default:
		errs = append(errs, field.NotSupported(path.Child("scope"), *p.Scope, []string{
			networkingv1.IngressClassParametersReferenceScopeCluster, networkingv1.IngressClassParametersReferenceScopeNamespace}))
	}
	return errs
}

// IngressClassUpdate checks the change from old: a class stays its controller's.
func IngressClassUpdate(c, old *networkingv1.IngressClass) field.ErrorList {
	return apivalidation.ValidateImmutableField(c.Spec.Controller, old.Spec.Controller, spec.Child("controller"))
}
