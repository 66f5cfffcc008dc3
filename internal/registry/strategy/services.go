package strategy

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/api/defaults"
	"minik8s/internal/api/dialect"
	"minik8s/internal/api/validation"
	"minik8s/internal/registry"
)

// serviceStrategy: a Service gets its address and its node ports in the transaction that stores it, and has them until
// another version is stored without them. There is no list of what is given beside the Services themselves.
func serviceStrategy(set Settings) *registry.Strategy {
	give := allocation{addresses{set.ServiceRange, set.PodRange}, nodePorts{set.NodePorts}, set.MachinePorts, balancers{set.LBPool}}
	return &registry.Strategy{
		Default:        onOne(defaults.Service),
		PrepareUpdate:  onStep(keepAllocated),
		ValidateCreate: checkOne(validation.Service),
		ValidateUpdate: checkStep(validation.ServiceUpdate),
		ValidateStatus: checkStep(validation.ServiceStatusUpdate),
		Warnings:       warnings(validation.ServiceWarnings),
		CopyStatus: onStep(func(dst, src *corev1.Service) {
			dst.Status = src.Status
			defaults.ServiceStatus(dst)
		}),
		Fields: selectable(map[string]func(*corev1.Service) string{
			"spec.clusterIP": func(s *corev1.Service) string { return s.Spec.ClusterIP },
			"spec.type":      func(s *corev1.Service) string { return string(s.Spec.Type) },
		}),
		Holds: func(obj api.Object) []string {
			return append(holds(obj.(*corev1.Service)), give.balancers.held(obj.(*corev1.Service))...)
		},
		Exclusive:   give.exclusive,
		Admit:       func(obj api.Object, others registry.Lister) error { return give.admit(obj, nil, others) },
		AdmitUpdate: give.admit,
		Dialect:     dialect.For(api.Services),
	}
}

func endpointsStrategy() *registry.Strategy {
	return &registry.Strategy{Default: onOne(defaults.Endpoints), Validate: checkOne(validation.Endpoints)}
}

func endpointSliceStrategy() *registry.Strategy {
	return &registry.Strategy{
		Default:        onOne(defaults.EndpointSlice),
		Validate:       checkOne(validation.EndpointSlice),
		ValidateUpdate: checkStep(validation.EndpointSliceUpdate),
		SpecChanged: func(obj, old api.Object) bool {
			s, was := obj.(*discoveryv1.EndpointSlice), old.(*discoveryv1.EndpointSlice)
			return !apiequality.Semantic.DeepEqual(s.Endpoints, was.Endpoints) || !apiequality.Semantic.DeepEqual(s.Ports, was.Ports)
		},
	}
}

// holds names the addresses and ports that a Service has to itself.
func holds(svc *corev1.Service) []string {
	var out []string
	for _, ip := range svc.Spec.ClusterIPs {
		if a, err := netip.ParseAddr(ip); err == nil {
			out = append(out, addressName(a.String()))
		}
	}
	for port := range portsOf(svc) {
		out = append(out, portName(port))
	}
	return out
}

// portsOf are the ports of nodes that a Service has.
func portsOf(svc *corev1.Service) map[int32]bool {
	var out map[int32]bool
	for _, port := range append(portNumbers(svc), svc.Spec.HealthCheckNodePort) {
		if port != 0 {
			if out == nil {
				out = map[int32]bool{}
			}
			out[port] = true
		}
	}
	return out
}

func portNumbers(svc *corev1.Service) []int32 {
	var out []int32
	for i := range svc.Spec.Ports {
		out = append(out, svc.Spec.Ports[i].NodePort)
	}
	return out
}

// keepAllocated completes an update by what the Service was given before and the update does not mention, and takes out
// what was given and is of no use to the new type, unless the update changes it: then validation refuses it.
func keepAllocated(svc, old *corev1.Service) {
	s, was := &svc.Spec, &old.Spec
	if s.Type == "" {
		s.Type = corev1.ServiceTypeClusterIP
	}
	s.Ports = slices.Clone(s.Ports)
	if s.Type != corev1.ServiceTypeExternalName && was.Type != corev1.ServiceTypeExternalName {
		keepAddress(s, was)
	}
	if api.HasNodePorts(svc) && api.HasNodePorts(old) {
		keepNodePorts(s, was, portsOf(svc))
	}
	if api.HasHealthCheckPort(svc) && api.HasHealthCheckPort(old) && s.HealthCheckNodePort == 0 {
		s.HealthCheckNodePort = was.HealthCheckNodePort
	}
	dropUnused(svc, old)
}

// keepAddress: people write one of clusterIP and clusterIPs, the other follows it.
func keepAddress(s, was *corev1.ServiceSpec) {
	same := slices.Equal(s.ClusterIPs, was.ClusterIPs)
	switch {
	case s.ClusterIP == "" && (len(s.ClusterIPs) == 0 || same):
		s.ClusterIP, s.ClusterIPs = was.ClusterIP, was.ClusterIPs
	case s.ClusterIP == was.ClusterIP && len(s.ClusterIPs) == 0:
		s.ClusterIPs = was.ClusterIPs
	case s.ClusterIP != was.ClusterIP && same:
		s.ClusterIPs = []string{s.ClusterIP}
	}
	if s.IPFamilyPolicy == nil {
		s.IPFamilyPolicy = was.IPFamilyPolicy
	}
}

// keepNodePorts gives ports that keep their name the node port that they had, unless another port has taken it.
func keepNodePorts(s, was *corev1.ServiceSpec, taken map[int32]bool) {
	had := map[string]int32{}
	for _, p := range was.Ports {
		had[p.Name] = p.NodePort
	}
	for i := range s.Ports {
		if p := &s.Ports[i]; p.NodePort == 0 && !taken[had[p.Name]] {
			p.NodePort = had[p.Name]
		}
	}
}

func dropUnused(svc, old *corev1.Service) {
	s, was := &svc.Spec, &old.Spec
	if s.Type == corev1.ServiceTypeExternalName && was.Type != corev1.ServiceTypeExternalName {
		if s.ClusterIP == was.ClusterIP && slices.Equal(s.ClusterIPs, was.ClusterIPs) || s.ClusterIP == "" && len(s.ClusterIPs) == 0 {
			s.ClusterIP, s.ClusterIPs = "", nil
		}
		if slices.Equal(s.IPFamilies, was.IPFamilies) {
			s.IPFamilies = nil
		}
		if apiequality.Semantic.DeepEqual(s.IPFamilyPolicy, was.IPFamilyPolicy) {
			s.IPFamilyPolicy = nil
		}
	}
	if api.HasNodePorts(old) && !api.HasNodePorts(svc) {
		have, known := portNumbers(svc), portNumbers(old)
		if !slices.ContainsFunc(have, func(p int32) bool { return p != 0 && !slices.Contains(known, p) }) {
			for i := range s.Ports {
				s.Ports[i].NodePort = 0
			}
		}
	}
	if api.HasHealthCheckPort(old) && !api.HasHealthCheckPort(svc) && s.HealthCheckNodePort == was.HealthCheckNodePort {
		s.HealthCheckNodePort = 0
	}
	if was.Type == corev1.ServiceTypeLoadBalancer && s.Type != corev1.ServiceTypeLoadBalancer {
		if apiequality.Semantic.DeepEqual(s.AllocateLoadBalancerNodePorts, was.AllocateLoadBalancerNodePorts) {
			s.AllocateLoadBalancerNodePorts = nil
		}
		if apiequality.Semantic.DeepEqual(s.LoadBalancerClass, was.LoadBalancerClass) {
			s.LoadBalancerClass = nil
		}
	}
	if api.ReachableFromOutside(old) && !api.ReachableFromOutside(svc) && s.ExternalTrafficPolicy == was.ExternalTrafficPolicy {
		s.ExternalTrafficPolicy = ""
	}
	if s.Type != corev1.ServiceTypeLoadBalancer {
		svc.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	}
	if api.Balanced(old) && !api.Balanced(svc) { // what was said of it as one
		svc.Status.Conditions = slices.DeleteFunc(slices.Clone(svc.Status.Conditions), func(c metav1.Condition) bool { return c.Type == corev1.LoadBalancerPortsError })
		if _, said := svc.Annotations[api.AnnouncedByAnnotation]; said {
			svc.Annotations = maps.Clone(svc.Annotations)
			delete(svc.Annotations, api.AnnouncedByAnnotation)
		}
	}
}

// allocation gives Services what they need to themselves.
type allocation struct {
	addresses addresses
	ports     nodePorts
	machine   []MachinePort
	balancers balancers
}

// needsAddress reports whether a write takes an address that the Service does not have yet.
func needsAddress(svc, old *corev1.Service) bool {
	return api.HasClusterIP(svc) && (svc.Spec.ClusterIP == "" || old == nil || old.Spec.ClusterIP != svc.Spec.ClusterIP)
}

// needsPorts reports whether a write takes ports of nodes that the Service does not have yet.
func needsPorts(svc, old *corev1.Service) bool {
	var had map[int32]bool
	if old != nil {
		had = portsOf(old)
	}
	for port := range portsOf(svc) {
		if !had[port] {
			return true
		}
	}
	return getsPorts(svc) && slices.Contains(portNumbers(svc), 0) || api.HasHealthCheckPort(svc) && svc.Spec.HealthCheckNodePort == 0
}

// getsPorts reports whether each port of a Service gets a port of the nodes. A load balancer that reaches pods by itself
// needs none.
func getsPorts(svc *corev1.Service) bool {
	allocate := svc.Spec.AllocateLoadBalancerNodePorts
	return svc.Spec.Type == corev1.ServiceTypeNodePort || svc.Spec.Type == corev1.ServiceTypeLoadBalancer && (allocate == nil || *allocate)
}

func (a allocation) exclusive(obj, old api.Object) []string {
	svc, was := versions(obj, old)
	var groups []string
	if needsAddress(svc, was) || a.balancers.needs(svc) {
		groups = append(groups, addressGroup)
	}
	if needsPorts(svc, was) {
		groups = append(groups, nodePortGroup)
	}
	return groups
}

func versions(obj, old api.Object) (svc, was *corev1.Service) {
	if old != nil {
		was = old.(*corev1.Service)
	}
	return obj.(*corev1.Service), was
}

func (a allocation) admit(obj, old api.Object, others registry.Lister) error {
	svc, was := versions(obj, old)
	errs := a.checkMachinePorts(svc, was, others)
	if needsAddress(svc, was) {
		errs = append(errs, a.giveAddress(svc, others)...)
	}
	if needsPorts(svc, was) {
		errs = append(errs, a.givePorts(svc, others)...)
	}
	if a.balancers.needs(svc) {
		errs = append(errs, a.balancers.give(svc, was, others)...)
	}
	return registry.Invalid(api.Services, svc.Name, errs)
}

// checkMachinePorts refuses a load balancer at ports that the machines need for themselves: its addresses are theirs. One of
// a class has addresses of its own.
func (a allocation) checkMachinePorts(svc, old *corev1.Service, others registry.Lister) (errs field.ErrorList) {
	onMachines := func(s *corev1.Service) bool {
		return s != nil && api.Balanced(s) && len(a.balancers.pool) == 0
	}
	if !onMachines(svc) {
		return nil
	}
	for i, p := range svc.Spec.Ports {
		had := onMachines(old) && slices.ContainsFunc(old.Spec.Ports, func(o corev1.ServicePort) bool { return o.Port == p.Port && o.Protocol == p.Protocol })
		for _, m := range a.machine {
			if !had && m.Protocol == p.Protocol && m.Port == int(p.Port) && (m.While == nil || len(others.List(m.While)) > 0) {
				errs = append(errs, field.Invalid(field.NewPath("spec", "ports").Index(i).Child("port"), p.Port,
					fmt.Sprintf("a load balancer has the addresses of the machines, and there this port is that of %s: choose another, or give the cluster addresses of its own for them (--lb-pool)", m.Of)))
			}
		}
	}
	return errs
}

func (a allocation) giveAddress(svc *corev1.Service, others registry.Lister) field.ErrorList {
	s := &svc.Spec
	given, err := a.addresses.give(svc, s.ClusterIP, others)
	if err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "clusterIPs"), s.ClusterIPs, err.Error())}
	}
	if s.ClusterIP == "" {
		s.ClusterIP, s.ClusterIPs = given, []string{given}
	}
	return nil
}

// givePorts gives ports of the nodes. Ports of the Service that have one number with several protocols share one, as in
// Kubernetes.
func (a allocation) givePorts(svc *corev1.Service, others registry.Lister) field.ErrorList {
	s := &svc.Spec
	s.Ports = slices.Clone(s.Ports)
	var errs field.ErrorList
	own, shared, pods := portsOf(svc), map[int32]int32{}, a.ports.hostPorts(others)
	if own == nil {
		own = map[int32]bool{}
	}
	for i := range s.Ports {
		p := &s.Ports[i]
		if p.NodePort == 0 {
			continue
		}
		shared[p.Port] = p.NodePort
		if err := a.ports.chosen(svc, p.Protocol, p.NodePort, pods, others); err != nil {
			errs = append(errs, field.Invalid(field.NewPath("spec", "ports").Index(i).Child("nodePort"), p.NodePort, err.Error()))
		}
	}
	next := func(path *field.Path) int32 {
		port, err := a.ports.free(own, pods, others)
		if err != nil {
			errs = append(errs, field.Invalid(path, 0, "failed to allocate a nodePort: "+err.Error()))
		}
		own[port] = true
		return port
	}
	for i := range s.Ports {
		if p := &s.Ports[i]; p.NodePort == 0 && getsPorts(svc) {
			if shared[p.Port] == 0 {
				shared[p.Port] = next(field.NewPath("spec", "ports").Index(i).Child("nodePort"))
			}
			p.NodePort = shared[p.Port]
		}
	}
	health := field.NewPath("spec", "healthCheckNodePort")
	switch {
	case !api.HasHealthCheckPort(svc):
	case s.HealthCheckNodePort == 0:
		s.HealthCheckNodePort = next(health)
	default:
		if err := a.ports.chosen(svc, corev1.ProtocolTCP, s.HealthCheckNodePort, pods, others); err != nil {
			errs = append(errs, field.Invalid(health, s.HealthCheckNodePort, err.Error()))
		}
	}
	return errs
}
