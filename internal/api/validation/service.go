package validation

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
)

var spec = field.NewPath("spec")

// Service checks a Service. Whether its addresses and node ports are free is for its strategy.
func Service(svc *corev1.Service) field.ErrorList { return service(svc, &corev1.Service{}) }

// service checks svc, in which addresses that old has already are taken as they are.
func service(svc, old *corev1.Service) field.ErrorList {
	s := &svc.Spec
	errs := oneOf(spec.Child("type"), s.Type,
		corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort)
	errs = append(errs, topologyMode(svc.Annotations)...)
	headless := api.Headless(svc)
	if len(s.Ports) == 0 && !headless && s.Type != corev1.ServiceTypeExternalName {
		errs = append(errs, field.Required(spec.Child("ports"), ""))
	}
	if headless && api.HasNodePorts(svc) {
		errs = append(errs, field.Invalid(spec.Child("clusterIPs").Index(0), corev1.ClusterIPNone, fmt.Sprintf("may not be set to 'None' for %s services", s.Type)))
	}
	errs = append(errs, servicePorts(s)...)
	if s.Selector != nil {
		errs = append(errs, metav1validation.ValidateLabels(s.Selector, spec.Child("selector"))...)
	}
	errs = append(errs, sessionAffinity(s)...)
	if s.Type == corev1.ServiceTypeExternalName {
		errs = append(errs, externalName(s)...)
	} else {
		errs = append(errs, clusterIPs(s, headless, old.Spec.ClusterIPs)...)
	}
	for i, ip := range s.ExternalIPs {
		errs = append(errs, endpointIP(spec.Child("externalIPs").Index(i), ip, old.Spec.ExternalIPs)...)
	}
	errs = append(errs, loadBalancer(svc, old)...)
	return append(errs, trafficPolicies(svc)...)
}

func topologyMode(annotations map[string]string) field.ErrorList {
	hints, hasHints := annotations[corev1.DeprecatedAnnotationTopologyAwareHints]
	mode, hasMode := annotations[corev1.AnnotationTopologyMode]
	if hasHints && hasMode && hints != mode {
		return field.ErrorList{field.Invalid(field.NewPath("metadata", "annotations").Key(corev1.AnnotationTopologyMode), mode,
			"must match annotations["+corev1.DeprecatedAnnotationTopologyAwareHints+"] when both are specified")}
	}
	return nil
}

func servicePorts(s *corev1.ServiceSpec) field.ErrorList {
	var errs field.ErrorList
	type number struct {
		protocol corev1.Protocol
		port     int32
	}
	names, ports, nodePorts := map[string]bool{}, map[number]bool{}, map[number]bool{}
	for i := range s.Ports {
		p, path := &s.Ports[i], spec.Child("ports").Index(i)
		switch {
		case p.Name == "" && len(s.Ports) > 1:
			errs = append(errs, field.Required(path.Child("name"), ""))
		case p.Name != "":
			errs = append(errs, say(path.Child("name"), p.Name, validation.IsDNS1123Label(p.Name))...)
			if names[p.Name] {
				errs = append(errs, field.Duplicate(path.Child("name"), p.Name))
			}
			names[p.Name] = true
		}
		errs = append(errs, say(path.Child("port"), p.Port, validation.IsValidPortNum(int(p.Port)))...)
		errs = append(errs, oneOf(path.Child("protocol"), p.Protocol, corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)...)
		errs = append(errs, portNumOrName(p.TargetPort, path.Child("targetPort"))...)
		if p.AppProtocol != nil {
			errs = append(errs, say(path.Child("appProtocol"), *p.AppProtocol, validation.IsQualifiedName(*p.AppProtocol))...)
		}
		if key := (number{p.Protocol, p.Port}); ports[key] {
			errs = append(errs, field.Duplicate(path, fmt.Sprintf("%d/%s", p.Port, p.Protocol)))
		} else {
			ports[key] = true
		}
		if p.NodePort == 0 {
			continue
		}
		errs = append(errs, say(path.Child("nodePort"), p.NodePort, validation.IsValidPortNum(int(p.NodePort)))...)
		if s.Type == corev1.ServiceTypeClusterIP {
			errs = append(errs, field.Forbidden(path.Child("nodePort"), "may not be used when `type` is 'ClusterIP'"))
		}
		if key := (number{p.Protocol, p.NodePort}); nodePorts[key] {
			errs = append(errs, field.Duplicate(path.Child("nodePort"), p.NodePort))
		} else {
			nodePorts[key] = true
		}
	}
	return errs
}

// maxAffinity is the longest time in seconds for which a client may be kept at one endpoint: a day.
const maxAffinity = 86400

func sessionAffinity(s *corev1.ServiceSpec) field.ErrorList {
	errs := oneOf(spec.Child("sessionAffinity"), s.SessionAffinity, corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone)
	path, config := spec.Child("sessionAffinityConfig"), s.SessionAffinityConfig
	const when = "when session affinity type is ClientIP"
	switch {
	case s.SessionAffinity != corev1.ServiceAffinityClientIP:
		if config != nil && s.SessionAffinity == corev1.ServiceAffinityNone {
			errs = append(errs, field.Forbidden(path, "must not be set when session affinity is None"))
		}
	case config == nil:
		errs = append(errs, field.Required(path, when))
	case config.ClientIP == nil:
		errs = append(errs, field.Required(path.Child("clientIP"), when))
	case config.ClientIP.TimeoutSeconds == nil:
		errs = append(errs, field.Required(path.Child("clientIP", "timeoutSeconds"), when))
	default:
		if t := *config.ClientIP.TimeoutSeconds; t <= 0 || t > maxAffinity {
			errs = append(errs, field.Invalid(path.Child("clientIP", "timeoutSeconds"), t, fmt.Sprintf("must be greater than 0 and less than %d", maxAffinity)))
		}
	}
	return errs
}

func externalName(s *corev1.ServiceSpec) field.ErrorList {
	var errs field.ErrorList
	const not = "may not be set for ExternalName services"
	if len(s.ClusterIPs) > 0 {
		errs = append(errs, field.Forbidden(spec.Child("clusterIPs"), not))
	}
	if len(s.IPFamilies) > 0 {
		errs = append(errs, field.Forbidden(spec.Child("ipFamilies"), not))
	}
	if s.IPFamilyPolicy != nil {
		errs = append(errs, field.Forbidden(spec.Child("ipFamilyPolicy"), not))
	}
	if name := strings.TrimSuffix(s.ExternalName, "."); name != "" {
		return append(errs, say(spec.Child("externalName"), name, validation.IsDNS1123Subdomain(name))...)
	}
	return append(errs, field.Required(spec.Child("externalName"), ""))
}

// clusterIPs checks addresses, families and policy. The cluster has IPv4 alone, and answers as a Kubernetes cluster does
// that has.
func clusterIPs(s *corev1.ServiceSpec, headless bool, known []string) field.ErrorList {
	var errs field.ErrorList
	path, families := spec.Child("clusterIPs"), spec.Child("ipFamilies")
	switch {
	case s.ClusterIP == "" && len(s.ClusterIPs) > 0:
		errs = append(errs, field.Invalid(path, s.ClusterIPs, "must be empty when `clusterIP` is not specified"))
	case s.ClusterIP != "" && len(s.ClusterIPs) == 0:
		errs = append(errs, field.Required(path, ""))
	case s.ClusterIP != "" && s.ClusterIPs[0] != s.ClusterIP:
		errs = append(errs, field.Invalid(path, s.ClusterIPs, "first value must match `clusterIP`"))
	}
	for i, family := range s.IPFamilies {
		errs = append(errs, oneOf(families.Index(i), family, corev1.IPv4Protocol, corev1.IPv6Protocol)...)
		if slices.Contains(s.IPFamilies[:i], family) {
			errs = append(errs, field.Duplicate(families.Index(i), family))
		}
	}
	errs = append(errs, optional(spec.Child("ipFamilyPolicy"), s.IPFamilyPolicy,
		corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack, corev1.IPFamilyPolicySingleStack)...)
	for i, ip := range s.ClusterIPs {
		if i == 0 && ip == corev1.ClusterIPNone {
			if len(s.ClusterIPs) > 1 {
				errs = append(errs, field.Invalid(path, s.ClusterIPs, "'None' must be the first and only value"))
			}
			continue
		}
		errs = append(errs, validation.IsValidIPForLegacyField(path.Index(i), ip, true, known)...)
	}
	if len(s.ClusterIPs) > 2 {
		errs = append(errs, field.Invalid(path, s.ClusterIPs, "may only hold up to 2 values"))
	}
	if len(errs) > 0 || headless && len(s.Selector) == 0 {
		return errs
	}
	return ipv4Alone(s, headless)
}

func ipv4Alone(s *corev1.ServiceSpec, headless bool) field.ErrorList {
	var errs field.ErrorList
	policy := spec.Child("ipFamilyPolicy")
	is := func(p corev1.IPFamilyPolicy) bool { return s.IPFamilyPolicy != nil && *s.IPFamilyPolicy == p }
	const several = "must be 'RequireDualStack' or 'PreferDualStack' when multiple "
	switch {
	case is(corev1.IPFamilyPolicyRequireDualStack):
		errs = append(errs, field.Invalid(policy, *s.IPFamilyPolicy, "this cluster is not configured for dual-stack services"))
	case is(corev1.IPFamilyPolicySingleStack) && len(s.ClusterIPs) == 2:
		errs = append(errs, field.Invalid(policy, *s.IPFamilyPolicy, several+"cluster IPs are specified"))
	case is(corev1.IPFamilyPolicySingleStack) && len(s.IPFamilies) == 2:
		errs = append(errs, field.Invalid(policy, *s.IPFamilyPolicy, several+"IP families are specified"))
	}
	for i, family := range s.IPFamilies {
		if family != corev1.IPv4Protocol {
			errs = append(errs, field.Invalid(spec.Child("ipFamilies").Index(i), family, "not configured on this cluster"))
		}
	}
	for i, ip := range s.ClusterIPs {
		if !headless && strings.Contains(ip, ":") {
			errs = append(errs, field.Invalid(spec.Child("clusterIPs").Index(i), ip, "expected an IPv4 address: IPv6 is not configured on this cluster"))
		}
	}
	if len(errs) == 0 && len(s.ClusterIPs) > 1 {
		errs = append(errs, field.Invalid(spec.Child("clusterIPs"), s.ClusterIPs, "may specify no more than one IP for each IP family"))
	}
	return errs
}

// loadBalancer checks what only a Service of the type LoadBalancer may have.
func loadBalancer(svc, old *corev1.Service) field.ErrorList {
	var errs field.ErrorList
	s, is := &svc.Spec, svc.Spec.Type == corev1.ServiceTypeLoadBalancer
	const only = "may only be used when `type` is 'LoadBalancer'"
	forbid := func(set bool, path *field.Path) {
		if set && !is {
			errs = append(errs, field.Forbidden(path, only))
		}
	}
	ranges := spec.Child("loadBalancerSourceRanges")
	note, noted := svc.Annotations[corev1.AnnotationLoadBalancerSourceRangesKey]
	if len(s.LoadBalancerSourceRanges) > 0 {
		forbid(true, ranges)
		known := trimmed(old.Spec.LoadBalancerSourceRanges)
		for i, cidr := range trimmed(s.LoadBalancerSourceRanges) {
			errs = append(errs, validation.IsValidCIDRForLegacyField(ranges.Index(i), cidr, true, known)...)
		}
	} else if noted {
		path := field.NewPath("metadata", "annotations").Key(corev1.AnnotationLoadBalancerSourceRangesKey)
		forbid(true, path)
		if note = strings.TrimSpace(note); note != "" && old.Annotations[corev1.AnnotationLoadBalancerSourceRangesKey] != note {
			for _, cidr := range trimmed(strings.Split(note, ",")) {
				errs = append(errs, validation.IsValidCIDRForLegacyField(path, cidr, true, nil)...)
			}
		}
	}
	forbid(s.AllocateLoadBalancerNodePorts != nil, spec.Child("allocateLoadBalancerNodePorts"))
	forbid(s.LoadBalancerClass != nil, spec.Child("loadBalancerClass"))
	if is && s.LoadBalancerClass != nil {
		errs = append(errs, say(spec.Child("loadBalancerClass"), *s.LoadBalancerClass, validation.IsQualifiedName(*s.LoadBalancerClass))...)
	}
	return errs
}

func trimmed(list []string) []string {
	out := make([]string, len(list))
	for i := range list {
		out[i] = strings.TrimSpace(list[i])
	}
	return out
}

func trafficPolicies(svc *corev1.Service) field.ErrorList {
	var errs field.ErrorList
	s := &svc.Spec
	path := spec.Child("externalTrafficPolicy")
	switch {
	case api.ReachableFromOutside(svc):
		errs = append(errs, oneOf(path, s.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)...)
	case s.ExternalTrafficPolicy != "":
		errs = append(errs, field.Invalid(path, s.ExternalTrafficPolicy, "may only be set for externally-accessible services"))
	}
	if path = spec.Child("healthCheckNodePort"); s.HealthCheckNodePort != 0 {
		if api.HasHealthCheckPort(svc) {
			errs = append(errs, say(path, s.HealthCheckNodePort, validation.IsValidPortNum(int(s.HealthCheckNodePort)))...)
		} else {
			errs = append(errs, field.Invalid(path, s.HealthCheckNodePort, "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"))
		}
	}
	errs = append(errs, optional(spec.Child("internalTrafficPolicy"), s.InternalTrafficPolicy,
		corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal)...)
	return append(errs, optional(spec.Child("trafficDistribution"), s.TrafficDistribution,
		corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferSameNode)...)
}

// ServiceUpdate checks the change from old: addresses, families and the class of a load balancer stay as they are, unless
// the Service begins or ends to be only a name for something outside.
func ServiceUpdate(svc, old *corev1.Service) field.ErrorList {
	errs := service(svc, old)
	s, was := &svc.Spec, &old.Spec
	const fixed = "may not change once set"
	if s.Type != corev1.ServiceTypeExternalName && was.Type != corev1.ServiceTypeExternalName {
		headless, wasHeadless := api.Headless(svc), api.Headless(old)
		switch {
		case headless && wasHeadless:
		case len(was.ClusterIPs) > 0 && len(s.ClusterIPs) == 0:
			errs = append(errs, field.Invalid(spec.Child("clusterIPs").Index(0), s.ClusterIPs, "primary clusterIP can not be unset"))
		case !slices.Equal(s.ClusterIPs, was.ClusterIPs) && len(was.ClusterIPs) > 0:
			errs = append(errs, field.Invalid(spec.Child("clusterIPs").Index(0), s.ClusterIPs, fixed))
		case !headless && !wasHeadless && !slices.Equal(s.IPFamilies, was.IPFamilies) && len(was.IPFamilies) > 0:
			errs = append(errs, field.Invalid(spec.Child("ipFamilies").Index(0), s.IPFamilies, fixed))
		}
	}
	if s.Type == was.Type && s.Type == corev1.ServiceTypeLoadBalancer && !apiequality.Semantic.DeepEqual(s.LoadBalancerClass, was.LoadBalancerClass) {
		errs = append(errs, field.Invalid(spec.Child("loadBalancerClass"), s.LoadBalancerClass, fixed))
	}
	if api.HasHealthCheckPort(svc) && api.HasHealthCheckPort(old) && s.HealthCheckNodePort != was.HealthCheckNodePort {
		errs = append(errs, field.Forbidden(spec.Child("healthCheckNodePort"), "field is immutable"))
	}
	return errs
}

// ServiceStatusUpdate checks the addresses of a load balancer.
func ServiceStatusUpdate(svc, old *corev1.Service) field.ErrorList {
	var errs field.ErrorList
	path, ingress := field.NewPath("status", "loadBalancer", "ingress"), svc.Status.LoadBalancer.Ingress
	if svc.Spec.Type != corev1.ServiceTypeLoadBalancer && len(ingress) > 0 {
		return field.ErrorList{field.Forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")}
	}
	var known []string
	for _, in := range old.Status.LoadBalancer.Ingress {
		known = append(known, in.IP)
	}
	for i, in := range ingress {
		at := path.Index(i)
		if in.IP != "" {
			errs = append(errs, validation.IsValidIPForLegacyField(at.Child("ip"), in.IP, true, known)...)
		}
		switch {
		case in.IPMode == nil && in.IP != "":
			errs = append(errs, field.Required(at.Child("ipMode"), "must be specified when `ip` is set"))
		case in.IPMode != nil && in.IP == "":
			errs = append(errs, field.Forbidden(at.Child("ipMode"), "may not be specified when `ip` is not set"))
		default:
			errs = append(errs, optional(at.Child("ipMode"), in.IPMode, corev1.LoadBalancerIPModeProxy, corev1.LoadBalancerIPModeVIP)...)
		}
		if in.Hostname != "" {
			errs = append(errs, say(at.Child("hostname"), in.Hostname, validation.IsDNS1123Subdomain(in.Hostname))...)
			if isIP(in.Hostname) {
				errs = append(errs, field.Invalid(at.Child("hostname"), in.Hostname, "must be a DNS name, not an IP address"))
			}
		}
	}
	return errs
}

// ServiceWarnings says which fields of a Service have no effect.
func ServiceWarnings(svc *corev1.Service) []string {
	var out []string
	s := &svc.Spec
	if _, ok := svc.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]; ok {
		out = append(out, "annotation "+corev1.DeprecatedAnnotationTopologyAwareHints+" is deprecated, please use "+corev1.AnnotationTopologyMode+" instead")
	}
	if s.Type == corev1.ServiceTypeClusterIP && s.ClusterIP == corev1.ClusterIPNone {
		if s.LoadBalancerIP != "" {
			out = append(out, "spec.loadBalancerIP is ignored for headless services")
		}
		if len(s.ExternalIPs) > 0 {
			out = append(out, "spec.externalIPs is ignored for headless services")
		}
		if s.SessionAffinity != corev1.ServiceAffinityNone {
			out = append(out, "spec.SessionAffinity is ignored for headless services")
		}
	}
	if s.Type == corev1.ServiceTypeExternalName && len(s.ExternalIPs) > 0 {
		out = append(out, `spec.externalIPs is ignored when spec.type is "ExternalName"`)
	}
	if s.Type != corev1.ServiceTypeExternalName && s.ExternalName != "" {
		out = append(out, `spec.externalName is ignored when spec.type is not "ExternalName"`)
	}
	if s.TrafficDistribution != nil && *s.TrafficDistribution == corev1.ServiceTrafficDistributionPreferClose {
		out = append(out, `spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"`)
	}
	return out
}
