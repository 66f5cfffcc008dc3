package why

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"minik8s/internal/api"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/ways"
)

// explainService says which pods a Service leads to, why not to others, and whether the nodes' kernels agree.
func (s *situation) explainService(svc *corev1.Service) Explanation {
	var v Explanation
	if svc.Spec.Type == corev1.ServiceTypeExternalName {
		v.Good, v.Head = true, fmt.Sprintf("%s is another name for %s, and has no endpoints", s.name(), svc.Spec.ExternalName)
		return v
	}
	v.fact("Addresses", addressesOf(svc))
	endpoints := s.endpointsOf(svc)
	selected, ready := 0, 0
	var lead, others []string
	for _, p := range s.service.pods {
		if !selects(svc, p) {
			continue
		}
		selected++
		if at := endpoints[p.Name]; len(at) > 0 {
			lead = append(lead, fmt.Sprintf("%s  %s%s", p.Name, strings.Join(at, " "), onNode(p)))
			ready++
			if some := s.missingPorts(svc, p); some != "" {
				lead = append(lead, "  not at all ports: "+some)
			}
			continue
		}
		others = append(others, fmt.Sprintf("%s  %s", p.Name, s.notEndpoint(svc, p)))
		v.try("why pod %s%s", p.Name, brief.Namespace(p.Namespace))
	}
	for _, by := range slices.Sorted(maps.Keys(endpoints)) {
		if !slices.ContainsFunc(s.service.pods, func(p *corev1.Pod) bool { return p.Name == by && selects(svc, p) }) {
			lead = append(lead, fmt.Sprintf("%s  %s (not selected: an EndpointSlice names it)", cmp.Or(by, "(no pod)"), strings.Join(endpoints[by], " ")))
			ready++
		}
	}
	v.fact("Leads to", few(lead, 20))
	v.fact("Selected, and no endpoints", few(others, 20))
	v.fact("Policies", s.policiesOf(svc))
	s.serviceHead(&v, svc, selected, ready)
	if ready == 0 && selected == 0 {
		s.nearMisses(&v, svc)
	}
	s.portRemarks(&v, svc)
	if svc.Labels[ways.ProxyName] != "" {
		v.because("its label %s leaves it to %s: the nodes' proxies lead nobody to it", ways.ProxyName, svc.Labels[ways.ProxyName])
	} else if virtual(svc) {
		s.kernels(&v, svc)
	}
	v.try("describe %s", s.args())
	return v
}

func (s *situation) serviceHead(v *Explanation, svc *corev1.Service, selected, ready int) {
	switch {
	case len(svc.Spec.Selector) == 0:
		v.Good = ready > 0
		v.Head = fmt.Sprintf("%s has no selector; the EndpointSlices that somebody else keeps for it name %d endpoints", s.name(), ready)
		if ready == 0 && svc.Labels[ways.ProxyName] != "" {
			v.Good = true
		}
	case selected == 0:
		v.Head = fmt.Sprintf("%s leads nowhere: no pod of its namespace has the labels %s", s.name(), labelText(svc.Spec.Selector))
		v.try("get pods --show-labels%s", brief.Namespace(svc.Namespace))
	case ready == 0:
		v.Head = fmt.Sprintf("%s leads nowhere: none of the %d pods that it selects is an endpoint", s.name(), selected)
	case ready < selected:
		v.Head = fmt.Sprintf("%s leads to %d of the %d pods that it selects", s.name(), ready, selected)
	default:
		v.Good, v.Head = true, fmt.Sprintf("%s leads to all %d pods that it selects", s.name(), selected)
	}
	switch {
	case svc.Spec.ClusterIP == corev1.ClusterIPNone:
		v.because("it is headless: its name leads to the pods' own addresses, and no rules are needed")
	case svc.Spec.ClusterIP == "":
		v.Good = false
		v.because("it has no virtual IP yet")
	}
	if svc.Spec.PublishNotReadyAddresses {
		v.because("publishNotReadyAddresses: pods count whether they are ready or not")
	}
}

func addressesOf(svc *corev1.Service) (out []string) {
	var ips []string
	if virtual(svc) {
		ips = append(ips, svc.Spec.ClusterIP)
	}
	ips = append(ips, svc.Spec.ExternalIPs...)
	for _, in := range svc.Status.LoadBalancer.Ingress {
		ips = append(ips, in.IP+in.Hostname)
	}
	for _, p := range svc.Spec.Ports {
		text := fmt.Sprintf("%d/%s", p.Port, p.Protocol)
		if p.Name != "" {
			text += " (" + p.Name + ")"
		}
		if len(ips) > 0 {
			text += " at " + strings.Join(ips, ", ")
		}
		if p.NodePort != 0 {
			text += fmt.Sprintf(", every node's port %d", p.NodePort)
		}
		out = append(out, text+" -> the pods' port "+p.TargetPort.String())
	}
	return out
}

// endpointsOf are the addresses that take connections, by the pod; those of no pod have no name.
func (s *situation) endpointsOf(svc *corev1.Service) map[string][]string {
	out := map[string][]string{}
	s.eachReady(svc, func(e *discoveryv1.Endpoint, _ corev1.ServicePort, at string) {
		name := ""
		if e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
			name = e.TargetRef.Name
		}
		if !slices.Contains(out[name], at) {
			out[name] = append(out[name], at)
		}
	})
	return out
}

// eachReady calls f with each endpoint that takes connections, and the Service's port that leads to it.
func (s *situation) eachReady(svc *corev1.Service, f func(e *discoveryv1.Endpoint, p corev1.ServicePort, at string)) {
	for _, slice := range s.service.slices {
		for _, p := range svc.Spec.Ports {
			i := slices.IndexFunc(slice.Ports, func(q discoveryv1.EndpointPort) bool {
				return q.Port != nil && (q.Name == nil && p.Name == "" || q.Name != nil && *q.Name == p.Name)
			})
			if i < 0 {
				continue
			}
			for k := range slice.Endpoints {
				e := &slice.Endpoints[k]
				if len(e.Addresses) > 0 && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
					f(e, p, e.Addresses[0]+":"+strconv.Itoa(int(*slice.Ports[i].Port)))
				}
			}
		}
	}
}

// policiesOf names the policies that select the pods.
func (s *situation) policiesOf(svc *corev1.Service) (out []string) {
	by := map[string][]string{}
	for _, p := range s.service.pods {
		if !selects(svc, p) {
			continue
		}
		for _, name := range ways.Policies(s.service.policies, p, networkingv1.PolicyTypeIngress) {
			by[name] = append(by[name], p.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		out = append(out, fmt.Sprintf("%s says who may reach %s", brief.Ref(api.NetworkPolicies, name), strings.Join(few(by[name], 5), ", ")))
	}
	return out
}

func onNode(p *corev1.Pod) string {
	if p.Spec.NodeName == "" {
		return ""
	}
	return " on " + p.Spec.NodeName
}

// few cuts a list.
func few(list []string, most int) []string {
	if n := len(list) - most; n > 0 {
		return append(list[:most:most], fmt.Sprintf("and %d more", n))
	}
	return list
}

func labelText(m map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k+"="+m[k])
	}
	return strings.Join(out, ",")
}
