package describe

//lint:file-ignore SA1019 Endpoints are served for those who do not know EndpointSlices

import (
	"context"
	"fmt"
	"net"
	"sort"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/ctl/session"
)

// shownEndpoints is how many endpoints of a port are shown.
const shownEndpoints = 10

func writeService(ctx context.Context, s *session.Session, out *sheet, svc *corev1.Service) error {
	spec := &svc.Spec
	out.pairs("Selector", spec.Selector)
	out.field("Type", string(spec.Type))
	if spec.Type == corev1.ServiceTypeExternalName {
		out.field("External Name", spec.ExternalName)
	} else {
		out.field("IP", spec.ClusterIP)
	}
	if len(spec.ExternalIPs) > 0 {
		out.field("External IPs", strings.Join(spec.ExternalIPs, ", "))
	}
	if spec.Type == corev1.ServiceTypeLoadBalancer {
		var at []string
		for _, in := range svc.Status.LoadBalancer.Ingress {
			at = append(at, in.IP+in.Hostname)
		}
		out.field("Load Balancer", strings.Join(at, ", "))
	}
	slices, _, err := client.All[*discoveryv1.EndpointSlice](ctx, s.API, api.EndpointSlices, client.ListOptions{Namespace: svc.Namespace,
		Labels: labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: svc.Name})})
	if err != nil {
		return err
	}
	for i := range spec.Ports {
		p := &spec.Ports[i]
		out.line("Port %s", portTitle(p))
		out.indented("  ", func() {
			out.field("Target Port", p.TargetPort.String()+"/"+string(p.Protocol))
			if p.NodePort != 0 {
				out.field("Node Port", fmt.Sprintf("%d/%s", p.NodePort, p.Protocol))
			}
			ready, others := endpointsOf(slices, p.Name)
			out.field("Endpoints", few(ready))
			if len(others) > 0 {
				out.field("Not Ready", few(others))
			}
		})
	}
	affinity := string(spec.SessionAffinity)
	if c := spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
		affinity += fmt.Sprintf(", for %d s", *c.ClientIP.TimeoutSeconds)
	}
	out.field("Affinity", affinity)
	if p := spec.InternalTrafficPolicy; p != nil {
		out.field("Internal Traffic", string(*p))
	}
	if spec.ExternalTrafficPolicy != "" {
		out.field("External Traffic", string(spec.ExternalTrafficPolicy))
	}
	if spec.HealthCheckNodePort != 0 {
		out.field("Health Port", strconv.Itoa(int(spec.HealthCheckNodePort)))
	}
	if d := spec.TrafficDistribution; d != nil {
		out.field("Distribution", *d)
	}
	if spec.PublishNotReadyAddresses {
		out.field("Not Ready Too", "true")
	}
	return nil
}

func portTitle(p *corev1.ServicePort) string {
	text := fmt.Sprintf("%d/%s", p.Port, p.Protocol)
	if p.Name != "" {
		text += " (" + p.Name + ")"
	}
	return text + ":"
}

// endpointsOf are the endpoints of a port of that name: those that take connections, and the others.
func endpointsOf(slices []*discoveryv1.EndpointSlice, name string) (ready, others []string) {
	for _, s := range slices {
		for _, p := range s.Ports {
			if p.Port == nil || p.Name != nil && *p.Name != name || p.Name == nil && name != "" {
				continue
			}
			for _, e := range s.Endpoints {
				for _, a := range e.Addresses {
					text := net.JoinHostPort(a, strconv.Itoa(int(*p.Port)))
					if e.TargetRef != nil {
						text += " (" + e.TargetRef.Name + ")"
					}
					if e.Conditions.Ready == nil || *e.Conditions.Ready {
						ready = append(ready, text)
					} else {
						others = append(others, text)
					}
				}
			}
		}
	}
	sort.Strings(ready)
	sort.Strings(others)
	return ready, others
}

func few(all []string) string {
	if n := len(all) - shownEndpoints; n > 0 {
		return strings.Join(all[:shownEndpoints], ", ") + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(all, ", ")
}

func writeEndpoints(out *sheet, e *corev1.Endpoints) {
	out.line("Subsets:")
	for _, s := range e.Subsets {
		var ports []string
		for _, p := range s.Ports {
			ports = append(ports, strings.TrimSpace(fmt.Sprintf("%s %d/%s", p.Name, p.Port, p.Protocol)))
		}
		out.indented("  ", func() {
			out.field("Ports", strings.Join(ports, ", "))
			out.field("Ready", few(addresses(s.Addresses)))
			out.field("Not Ready", few(addresses(s.NotReadyAddresses)))
		})
	}
	if len(e.Subsets) == 0 {
		out.line("  <none>")
	}
}

func addresses(list []corev1.EndpointAddress) []string {
	var out []string
	for _, a := range list {
		text := a.IP
		if a.TargetRef != nil {
			text += " (" + a.TargetRef.Name + ")"
		}
		out = append(out, text)
	}
	return out
}

func writeEndpointSlice(out *sheet, s *discoveryv1.EndpointSlice) {
	out.field("Address Type", string(s.AddressType))
	var ports []string
	for _, p := range s.Ports {
		text := "<any>"
		if p.Port != nil {
			text = strconv.Itoa(int(*p.Port))
		}
		if p.Protocol != nil {
			text += "/" + string(*p.Protocol)
		}
		if p.Name != nil {
			text = strings.TrimSpace(*p.Name + " " + text)
		}
		ports = append(ports, text)
	}
	out.field("Ports", strings.Join(ports, ", "))
	out.line("Endpoints:")
	for _, e := range s.Endpoints {
		out.line("  %-24s %-28s %s", strings.Join(e.Addresses, ","), conditions(&e.Conditions), strings.Join(where(&e), ", "))
	}
	if len(s.Endpoints) == 0 {
		out.line("  <none>")
	}
}

func conditions(c *discoveryv1.EndpointConditions) string {
	is := func(b *bool, unknown bool) bool { return b == nil && unknown || b != nil && *b }
	var out []string
	if is(c.Ready, true) {
		out = append(out, "ready")
	} else {
		out = append(out, "not ready")
		if is(c.Serving, false) {
			out = append(out, "serving")
		}
	}
	if is(c.Terminating, false) {
		out = append(out, "terminating")
	}
	return strings.Join(out, ", ")
}

func where(e *discoveryv1.Endpoint) []string {
	var out []string
	add := func(what string, value *string) {
		if value != nil && *value != "" {
			out = append(out, what+" "+*value)
		}
	}
	if e.TargetRef != nil {
		add(strings.ToLower(e.TargetRef.Kind), &e.TargetRef.Name)
	}
	add("node", e.NodeName)
	add("zone", e.Zone)
	add("host name", e.Hostname)
	return out
}
