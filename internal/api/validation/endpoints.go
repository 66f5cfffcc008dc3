package validation

//lint:file-ignore SA1019 Endpoints are served for those who do not know EndpointSlices

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
)

// What a slice may hold; the numbers are Kubernetes'.
const (
	maxEndpoints = 1000
	maxAddresses = 100
	maxPorts     = 20000
	maxTopology  = 16
	maxHints     = 8
)

// isIP reports whether a text is an address, also in a form that is not written any more: "010.0.0.1".
func isIP(s string) bool { return netutils.ParseIPSloppy(s) != nil }

// endpointIP checks an address to which traffic may be sent: none that means the node itself or only its link.
func endpointIP(path *field.Path, ip string, known []string) field.ErrorList {
	if errs := validation.IsValidIPForLegacyField(path, ip, true, known); len(errs) > 0 {
		return errs
	}
	a, err := netip.ParseAddr(ip)
	if err != nil {
		return nil // an old form of writing it, which was let in before
	}
	switch {
	case a.IsUnspecified():
		return field.ErrorList{field.Invalid(path, ip, fmt.Sprintf("may not be unspecified (%v)", ip))}
	case a.IsLoopback():
		return field.ErrorList{field.Invalid(path, ip, "may not be in the loopback range (127.0.0.0/8, ::1/128)")}
	case a.IsLinkLocalUnicast():
		return field.ErrorList{field.Invalid(path, ip, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")}
	case a.IsLinkLocalMulticast():
		return field.ErrorList{field.Invalid(path, ip, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")}
	}
	return nil
}

// Endpoints checks Endpoints.
func Endpoints(e *corev1.Endpoints) field.ErrorList {
	var errs field.ErrorList
	for i := range e.Subsets {
		s, path := &e.Subsets[i], field.NewPath("subsets").Index(i)
		if len(s.Addresses) == 0 && len(s.NotReadyAddresses) == 0 {
			errs = append(errs, field.Required(path, "must specify `addresses` or `notReadyAddresses`"))
		}
		for j := range s.Addresses {
			errs = append(errs, endpointAddress(&s.Addresses[j], path.Child("addresses").Index(j))...)
		}
		for j := range s.NotReadyAddresses {
			errs = append(errs, endpointAddress(&s.NotReadyAddresses[j], path.Child("notReadyAddresses").Index(j))...)
		}
		for j := range s.Ports {
			p, at := &s.Ports[j], path.Child("ports").Index(j)
			switch {
			case p.Name != "":
				errs = append(errs, say(at.Child("name"), p.Name, validation.IsDNS1123Label(p.Name))...)
			case len(s.Ports) > 1:
				errs = append(errs, field.Required(at.Child("name"), ""))
			}
			errs = append(errs, say(at.Child("port"), p.Port, validation.IsValidPortNum(int(p.Port)))...)
			errs = append(errs, oneOf(at.Child("protocol"), p.Protocol, corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)...)
			if p.AppProtocol != nil {
				errs = append(errs, say(at.Child("appProtocol"), *p.AppProtocol, validation.IsQualifiedName(*p.AppProtocol))...)
			}
		}
	}
	return errs
}

func endpointAddress(a *corev1.EndpointAddress, path *field.Path) field.ErrorList {
	errs := endpointIP(path.Child("ip"), a.IP, nil)
	if a.Hostname != "" {
		errs = append(errs, say(path.Child("hostname"), a.Hostname, validation.IsDNS1123Label(a.Hostname))...)
	}
	if a.NodeName != nil {
		errs = append(errs, say(path.Child("nodeName"), *a.NodeName, validation.IsDNS1123Subdomain(*a.NodeName))...)
	}
	return errs
}

// EndpointSlice checks an EndpointSlice.
func EndpointSlice(s *discoveryv1.EndpointSlice) field.ErrorList {
	errs := oneOf(field.NewPath("addressType"), s.AddressType, discoveryv1.AddressTypeFQDN, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6)
	errs = append(errs, slicePorts(s.Ports, field.NewPath("ports"))...)
	path := field.NewPath("endpoints")
	if len(s.Endpoints) > maxEndpoints {
		return append(errs, field.TooMany(path, len(s.Endpoints), maxEndpoints))
	}
	for i := range s.Endpoints {
		errs = append(errs, endpoint(&s.Endpoints[i], s.AddressType, path.Index(i))...)
	}
	return errs
}

// EndpointSliceUpdate checks the change from old: the type of addresses stays.
func EndpointSliceUpdate(s, old *discoveryv1.EndpointSlice) field.ErrorList {
	if s.AddressType != old.AddressType {
		return field.ErrorList{field.Invalid(field.NewPath("addressType"), s.AddressType, "field is immutable")}
	}
	return nil
}

func slicePorts(ports []discoveryv1.EndpointPort, path *field.Path) field.ErrorList {
	if len(ports) > maxPorts {
		return field.ErrorList{field.TooMany(path, len(ports), maxPorts)}
	}
	var errs field.ErrorList
	names := map[string]bool{}
	for i := range ports {
		p, at, name := &ports[i], path.Index(i), ""
		if p.Name != nil {
			name = *p.Name
		}
		if name != "" {
			errs = append(errs, say(at.Child("name"), name, validation.IsDNS1123Label(name))...)
		}
		if names[name] {
			errs = append(errs, field.Duplicate(at.Child("name"), name))
		}
		names[name] = true
		if p.Protocol == nil {
			errs = append(errs, field.Required(at.Child("protocol"), ""))
		} else {
			errs = append(errs, oneOf(at.Child("protocol"), *p.Protocol, corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)...)
		}
		if p.Port != nil {
			errs = append(errs, say(at.Child("port"), *p.Port, validation.IsValidPortNum(int(*p.Port)))...)
		}
		if p.AppProtocol != nil {
			errs = append(errs, say(at.Child("appProtocol"), *p.AppProtocol, validation.IsQualifiedName(*p.AppProtocol))...)
		}
	}
	return errs
}

func endpoint(e *discoveryv1.Endpoint, family discoveryv1.AddressType, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	addresses := path.Child("addresses")
	switch {
	case len(e.Addresses) == 0:
		errs = append(errs, field.Required(addresses, "must contain at least 1 address"))
	case len(e.Addresses) > maxAddresses:
		errs = append(errs, field.TooMany(addresses, len(e.Addresses), maxAddresses))
	}
	for i, a := range e.Addresses {
		at := addresses.Index(i)
		if family == discoveryv1.AddressTypeFQDN {
			errs = append(errs, validation.IsFullyQualifiedDomainName(at, a)...)
			continue
		}
		wrong := endpointIP(at, a, nil)
		if ip, err := netip.ParseAddr(a); err == nil && ip.Is4() != (family == discoveryv1.AddressTypeIPv4) {
			wrong = append(wrong, field.Invalid(at, a, "must be an "+string(family)+" address"))
		}
		errs = append(errs, wrong...)
	}
	if e.NodeName != nil {
		errs = append(errs, say(path.Child("nodeName"), *e.NodeName, validation.IsDNS1123Subdomain(*e.NodeName))...)
	}
	if e.Hostname != nil {
		errs = append(errs, say(path.Child("hostname"), *e.Hostname, validation.IsDNS1123Label(*e.Hostname))...)
	}
	topology := path.Child("deprecatedTopology")
	if len(e.DeprecatedTopology) > maxTopology {
		errs = append(errs, field.TooMany(topology, len(e.DeprecatedTopology), maxTopology))
	}
	errs = append(errs, metav1validation.ValidateLabels(e.DeprecatedTopology, topology)...)
	return append(errs, hints(e.Hints, path.Child("hints"))...)
}

func hints(h *discoveryv1.EndpointHints, path *field.Path) field.ErrorList {
	if h == nil {
		return nil
	}
	var zones, nodes []string
	for _, z := range h.ForZones {
		zones = append(zones, z.Name)
	}
	for _, n := range h.ForNodes {
		nodes = append(nodes, n.Name)
	}
	return append(hintNames(zones, path.Child("forZones"), validation.IsValidLabelValue), hintNames(nodes, path.Child("forNodes"), validation.IsDNS1123Subdomain)...)
}

func hintNames(names []string, path *field.Path, rule func(string) []string) field.ErrorList {
	if len(names) > maxHints {
		return field.ErrorList{field.TooMany(path, len(names), maxHints)}
	}
	var errs field.ErrorList
	for i, name := range names {
		at := path.Index(i).Child("name")
		if slices.Contains(names[:i], name) {
			errs = append(errs, field.Duplicate(at, name))
		}
		errs = append(errs, say(at, name, rule(name))...)
	}
	return errs
}
