package endpointslice

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"minik8s/internal/api/podspec"
)

// group is the endpoints with the same ports.
type group struct {
	family    discoveryv1.AddressType
	ports     []discoveryv1.EndpointPort
	endpoints []discoveryv1.Endpoint
}

// key is the same for groups that share slices.
func (g *group) key() string { return portsKey(g.family, g.ports) }

func portsKey(family discoveryv1.AddressType, ports []discoveryv1.EndpointPort) string {
	all := make([]string, len(ports))
	for i, p := range ports {
		all[i] = fmt.Sprintf("%s/%s/%d/%s", text(p.Name), text(p.Protocol), number(p.Port), text(p.AppProtocol))
	}
	slices.Sort(all)
	return string(family) + " " + strings.Join(all, " ")
}

func text[T ~string](s *T) string {
	if s == nil {
		return ""
	}
	return string(*s)
}

func number(n *int32) int32 {
	if n == nil {
		return -1
	}
	return *n
}

// serves reports whether a pod is an endpoint of the Services that select it: it has an address and has not ended.
func serves(pod *corev1.Pod) bool { return addressOf(pod) != "" && !podspec.Finished(pod.Status.Phase) }

// addressOf is a pod's IPv4 address; empty if it has none.
func addressOf(pod *corev1.Pod) string {
	for _, ip := range pod.Status.PodIPs {
		if a, err := netip.ParseAddr(ip.IP); err == nil && a.Is4() {
			return a.String()
		}
	}
	if a, err := netip.ParseAddr(pod.Status.PodIP); err == nil && a.Is4() {
		return a.String()
	}
	return ""
}

func ready(pod *corev1.Pod) bool {
	c := podspec.Condition(pod.Status.Conditions, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// wanted returns the endpoints of a Service, by their ports: a named target port may be another number in each pod. zone
// returns that of a node; empty: it has none.
func wanted(svc *corev1.Service, pods []*corev1.Pod, zone func(node string) string) []group {
	var out []group
	at := map[string]int{}
	for _, pod := range pods {
		if !serves(pod) {
			continue
		}
		g := group{family: discoveryv1.AddressTypeIPv4, ports: slicePorts(svc, pod)}
		key := g.key()
		if _, ok := at[key]; !ok {
			at[key] = len(out)
			out = append(out, g)
		}
		out[at[key]].endpoints = append(out[at[key]].endpoints, endpointOf(svc, pod, zone))
	}
	for i := range out {
		slices.SortFunc(out[i].endpoints, func(a, b discoveryv1.Endpoint) int { return cmp.Compare(identity(&a), identity(&b)) })
	}
	slices.SortFunc(out, func(a, b group) int { return cmp.Compare(a.key(), b.key()) })
	return out
}

func endpointOf(svc *corev1.Service, pod *corev1.Pod, zone func(string) string) discoveryv1.Endpoint {
	serving, terminating := ready(pod), pod.DeletionTimestamp != nil
	e := discoveryv1.Endpoint{
		Addresses: []string{addressOf(pod)},
		Conditions: discoveryv1.EndpointConditions{
			Ready: new(svc.Spec.PublishNotReadyAddresses || serving && !terminating), Serving: &serving, Terminating: &terminating},
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
	}
	if node := pod.Spec.NodeName; node != "" {
		e.NodeName = &node
		if z := zone(node); z != "" {
			e.Zone = &z
		}
	}
	if named(svc, pod) {
		e.Hostname = new(pod.Spec.Hostname)
	}
	e.Hints = hints(svc, &e)
	return e
}

// named reports whether the pod has a name of its own below the Service's.
func named(svc *corev1.Service, pod *corev1.Pod) bool {
	return pod.Spec.Hostname != "" && pod.Spec.Subdomain == svc.Name && pod.Namespace == svc.Namespace
}

// hints says from where an endpoint is to be used, when the Service prefers what is near. Where no endpoint is near,
// all are used.
func hints(svc *corev1.Service, e *discoveryv1.Endpoint) *discoveryv1.EndpointHints {
	how := svc.Spec.TrafficDistribution
	if how == nil || !*e.Conditions.Ready {
		return nil
	}
	var h discoveryv1.EndpointHints
	switch *how {
	case corev1.ServiceTrafficDistributionPreferSameNode:
		if e.NodeName != nil {
			h.ForNodes = []discoveryv1.ForNode{{Name: *e.NodeName}}
		}
		fallthrough
	case corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone:
		if e.Zone != nil {
			h.ForZones = []discoveryv1.ForZone{{Name: *e.Zone}}
		}
	}
	if h.ForNodes == nil && h.ForZones == nil {
		return nil
	}
	return &h
}

// slicePorts are the ports of a Service as this pod has them. A port whose name no container has is left out.
func slicePorts(svc *corev1.Service, pod *corev1.Pod) []discoveryv1.EndpointPort {
	out := []discoveryv1.EndpointPort{}
	for i := range svc.Spec.Ports {
		p := &svc.Spec.Ports[i]
		if target := podspec.TargetPort(p, pod); target != 0 {
			out = append(out, discoveryv1.EndpointPort{Name: &p.Name, Protocol: &p.Protocol, Port: &target, AppProtocol: p.AppProtocol})
		}
	}
	return out
}

// identity is the same for versions of one endpoint.
func identity(e *discoveryv1.Endpoint) string {
	address := ""
	if len(e.Addresses) > 0 {
		address = e.Addresses[0]
	}
	if e.TargetRef != nil {
		return address + " " + string(e.TargetRef.UID) + " " + e.TargetRef.Name
	}
	return address
}
