package validation

import (
	"fmt"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api/minik8s"
)

// DNS checks a DNS object. Whether its name and its address are free is for its strategy.
func DNS(d *minik8s.DNS) field.ErrorList {
	s := &d.Spec
	errs := oneHost(spec.Child("host"), s.Host)
	if s.ServiceAddress != "" {
		errs = append(errs, validation.IsValidIPForLegacyField(spec.Child("serviceAddress"), s.ServiceAddress, true, nil)...)
	}
	at, known := spec.Child("paths"), map[string]int{}
	if len(s.Paths) == 0 {
		errs = append(errs, field.Required(at, "name at least one path and where it leads"))
	}
	for i := range s.Paths {
		p, path := &s.Paths[i], at.Index(i)
		errs = append(errs, pathPrefix(path.Child("path"), p.Path)...)
		if first, twice := known[p.CleanPath()]; twice && p.Path != "" {
			errs = append(errs, &field.Error{Type: field.ErrorTypeDuplicate, Field: path.Child("path").String(), BadValue: p.Path,
				Detail: fmt.Sprintf("%s is the same: a slash at the end means nothing", at.Index(first).Child("path"))})
		} else {
			known[p.CleanPath()] = i
		}
		errs = append(errs, dnsTarget(path, p)...)
	}
	return errs
}

// DNSStatusUpdate checks the conditions.
func DNSStatusUpdate(d, _ *minik8s.DNS) field.ErrorList {
	return metav1validation.ValidateConditions(d.Status.Conditions, field.NewPath("status", "conditions"))
}

// oneHost checks a host name that is no pattern and no address.
func oneHost(path *field.Path, host string) field.ErrorList {
	switch {
	case host == "":
		return field.ErrorList{field.Required(path, "a host name, as in \"hello.example\"")}
	case isIP(host):
		return field.ErrorList{field.Invalid(path, host, "must be a DNS name, not an IP address")}
	case strings.Contains(host, "*"):
		return field.ErrorList{field.Invalid(path, host, "must be one host name: an Ingress can have a pattern")}
	}
	return say(path, host, validation.IsDNS1123Subdomain(host))
}

// odd are sequences in a path that a server or a proxy on the way reads as another path, as in Ingresses.
var odd, oddEnds = []string{"//", "/./", "/../", "%2f", "%2F"}, []string{"/..", "/."}

// absolutePath checks that a path begins with a slash and can be read in one way only.
func absolutePath(at *field.Path, path string) field.ErrorList {
	var errs field.ErrorList
	if !strings.HasPrefix(path, "/") {
		errs = append(errs, field.Invalid(at, path, "must be an absolute path"))
	}
	for _, seq := range odd {
		if strings.Contains(path, seq) {
			errs = append(errs, field.Invalid(at, path, fmt.Sprintf("must not contain '%s'", seq)))
		}
	}
	for _, end := range oddEnds {
		if strings.HasSuffix(path, end) {
			errs = append(errs, field.Invalid(at, path, fmt.Sprintf("cannot end with '%s'", end)))
		}
	}
	return errs
}

func pathPrefix(at *field.Path, path string) field.ErrorList {
	if path == "" {
		return field.ErrorList{field.Required(at, "a path that begins with a slash; / is everything")}
	}
	errs := absolutePath(at, path)
	if strings.ContainsFunc(path, func(c rune) bool { return c <= ' ' || c == 0x7f || c == '?' || c == '#' }) {
		errs = append(errs, field.Invalid(at, path, "must be a path alone: it has a space, a control character, a ? or a #"))
	}
	return errs
}

func dnsTarget(path *field.Path, p *minik8s.DNSPath) field.ErrorList {
	var errs field.ErrorList
	const which = "set one of service and address: where does the path lead?"
	switch {
	case p.Service == nil && p.Address == "":
		return field.ErrorList{field.Required(path, which)}
	case p.Service != nil && p.Address != "":
		return field.ErrorList{field.Forbidden(path.Child("address"), "may not be set beside service: "+which)}
	case p.Service != nil:
		at := path.Child("service")
		errs = append(errs, serviceName(at.Child("name"), p.Service.Name, p.Service.Name)...)
		return append(errs, say(at.Child("port"), p.Service.Port, validation.IsValidPortNum(int(p.Service.Port)))...)
	}
	at := path.Child("address")
	target, err := p.Target()
	switch {
	case err != nil:
		errs = append(errs, field.Invalid(at, p.Address, err.Error()))
	case target.Service != "":
		errs = append(errs, serviceName(at, p.Address, target.Service)...)
	default:
		for _, e := range endpointIP(at, target.Addr.String(), nil) {
			errs = append(errs, field.Invalid(at, p.Address, e.Detail))
		}
	}
	return errs
}

// serviceName checks a name that is a Service's; value is what was given.
func serviceName(path *field.Path, value, name string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "the name of a Service")}
	}
	var errs field.ErrorList
	for _, msg := range apivalidation.NameIsDNSLabel(name, false) {
		errs = append(errs, field.Invalid(path, value, "the name of a Service: "+msg))
	}
	return errs
}
