package table

//lint:file-ignore SA1019 Endpoints are served for those who do not know EndpointSlices

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

var serviceColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name must be unique within a namespace."},
	{Name: "Type", Type: "string", Description: "How the service is reached."},
	{Name: "Cluster-IP", Type: "string", Description: "The virtual address of the service inside of the cluster."},
	{Name: "External-IP", Type: "string", Description: "The addresses at which the service is reached from outside."},
	{Name: "Port(s)", Type: "string", Description: "The ports of the service, and of the nodes for it."},
	{Name: "Age", Type: "string", Description: "The time since the service was created."},
	{Name: "Selector", Type: "string", Priority: 1, Description: "The labels of the pods that serve."},
}

func serviceRow(svc *corev1.Service, now time.Time) []any {
	ip := none
	if len(svc.Spec.ClusterIPs) > 0 {
		ip = svc.Spec.ClusterIPs[0]
	}
	return []any{svc.Name, string(svc.Spec.Type), ip, externalIPs(svc), or(servicePorts(svc.Spec.Ports), none),
		since(svc.CreationTimestamp.Time, now), labels.FormatLabels(svc.Spec.Selector)}
}

func externalIPs(svc *corev1.Service) string {
	given := strings.Join(svc.Spec.ExternalIPs, ",")
	switch svc.Spec.Type {
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort:
		return or(given, none)
	case corev1.ServiceTypeLoadBalancer:
		var all []string
		for _, in := range svc.Status.LoadBalancer.Ingress {
			all = append(all, or(in.IP, in.Hostname))
		}
		return or(strings.Join(append(all, svc.Spec.ExternalIPs...), ","), "<pending>")
	case corev1.ServiceTypeExternalName:
		return svc.Spec.ExternalName
	}
	return "<unknown>"
}

func servicePorts(ports []corev1.ServicePort) string {
	pieces := make([]string, len(ports))
	for i, p := range ports {
		pieces[i] = fmt.Sprintf("%d/%s", p.Port, p.Protocol)
		if p.NodePort > 0 {
			pieces[i] = fmt.Sprintf("%d:%d/%s", p.Port, p.NodePort, p.Protocol)
		}
	}
	return strings.Join(pieces, ",")
}

// The columns of the two seed systems.
var serviceColumnsExtended = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Namespace and name."},
	{Name: "UID", Type: "string", Description: "The UID of the service."},
	{Name: "ClusterIp", Type: "string", Description: "The virtual address of the service."},
	{Name: "Ports", Type: "string", Description: "The ports of the service."},
}

func serviceRowExtended(svc *corev1.Service, _ time.Time) []any {
	return []any{svc.Namespace + "/" + svc.Name, string(svc.UID), or(svc.Spec.ClusterIP, none), or(servicePorts(svc.Spec.Ports), none)}
}

var serviceColumnsCompact = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name must be unique within a namespace."},
	{Name: "UID", Type: "string", Description: "The UID of the service."},
	{Name: "Type", Type: "string", Description: "How the service is reached."},
	{Name: "IP", Type: "string", Description: "The virtual address of the service."},
}

func serviceRowCompact(svc *corev1.Service, _ time.Time) []any {
	return []any{svc.Name, string(svc.UID), string(svc.Spec.Type), or(svc.Spec.ClusterIP, none)}
}

// shown is how many addresses or ports a cell shows.
const shown = 3

var endpointsColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "The name of the service."},
	{Name: "Endpoints", Type: "string", Description: "Addresses and ports that take connections."},
	{Name: "Age", Type: "string", Description: "The time since the object was created."},
}

func endpointsRow(e *corev1.Endpoints, now time.Time) []any {
	var all []string
	for _, s := range e.Subsets {
		for _, a := range s.Addresses {
			if len(s.Ports) == 0 {
				all = append(all, a.IP)
			}
		}
		for _, p := range s.Ports {
			for _, a := range s.Addresses {
				all = append(all, net.JoinHostPort(a.IP, strconv.Itoa(int(p.Port))))
			}
		}
	}
	return []any{e.Name, some(all, none), since(e.CreationTimestamp.Time, now)}
}

// some joins the first few of a list and says how many more there are.
func some(all []string, empty string) string {
	if n := len(all) - shown; n > 0 {
		return strings.Join(all[:shown], ",") + fmt.Sprintf(" + %d more...", n)
	}
	return or(strings.Join(all, ","), empty)
}

var endpointSliceColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name must be unique within a namespace."},
	{Name: "AddressType", Type: "string", Description: "IPv4, IPv6 or FQDN."},
	{Name: "Ports", Type: "string", Description: "The ports of every endpoint."},
	{Name: "Endpoints", Type: "string", Description: "The addresses."},
	{Name: "Age", Type: "string", Description: "The time since the object was created."},
}

func endpointSliceRow(s *discoveryv1.EndpointSlice, now time.Time) []any {
	const unset = "<unset>"
	var ports, addresses []string
	for _, p := range s.Ports {
		switch {
		case p.Port != nil:
			ports = append(ports, strconv.Itoa(int(*p.Port)))
		case p.Name != nil && *p.Name != "":
			ports = append(ports, *p.Name)
		default:
			ports = append(ports, "*")
		}
	}
	for _, e := range s.Endpoints {
		addresses = slices.Concat(addresses, e.Addresses)
	}
	return []any{s.Name, string(s.AddressType), some(ports, unset), some(addresses, unset), since(s.CreationTimestamp.Time, now)}
}
