package table

import (
	"fmt"
	"slices"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
)

var ingressColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name must be unique within a namespace."},
	{Name: "Class", Type: "string", Description: "The class, which says whose gateway serves it."},
	{Name: "Hosts", Type: "string", Description: "The host names of the rules."},
	{Name: "Address", Type: "string", Description: "The addresses at which it is reached."},
	{Name: "Ports", Type: "string", Description: "The ports at which it is reached."},
	{Name: "Age", Type: "string", Description: "The time since the object was created."},
}

func ingressRow(in *networkingv1.Ingress, now time.Time) []any {
	class, ports := none, "80"
	if in.Spec.IngressClassName != nil {
		class = *in.Spec.IngressClassName
	}
	if len(in.Spec.TLS) > 0 {
		ports = "80, 443"
	}
	var at []string
	for _, a := range in.Status.LoadBalancer.Ingress {
		if text := or(a.IP, a.Hostname); text != "" {
			at = append(at, text)
		}
	}
	slices.Sort(at)
	return []any{in.Name, class, ingressHosts(in.Spec.Rules), strings.Join(slices.Compact(at), ","), ports, since(in.CreationTimestamp.Time, now)}
}

// ingressHosts joins the first few hosts and says how many more rules there are.
func ingressHosts(rules []networkingv1.IngressRule) string {
	var hosts []string
	for i := range rules {
		if len(hosts) == shown {
			return strings.Join(hosts, ",") + fmt.Sprintf(" + %d more...", len(rules)-shown)
		}
		if rules[i].Host != "" {
			hosts = append(hosts, rules[i].Host)
		}
	}
	return or(strings.Join(hosts, ","), "*")
}

var ingressClassColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "The name of the class."},
	{Name: "Controller", Type: "string", Description: "Who serves the Ingresses of the class."},
	{Name: "Parameters", Type: "string", Description: "An object with more settings."},
	{Name: "Age", Type: "string", Description: "The time since the object was created."},
}

func ingressClassRow(c *networkingv1.IngressClass, now time.Time) []any {
	name, parameters := c.Name, none
	if api.IsDefaultIngressClass(c) {
		name += " (default)"
	}
	if p := c.Spec.Parameters; p != nil {
		parameters = p.Kind
		if p.APIGroup != nil {
			parameters += "." + *p.APIGroup
		}
		parameters += "/" + p.Name
	}
	return []any{name, c.Spec.Controller, parameters, since(c.CreationTimestamp.Time, now)}
}

var networkPolicyColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name must be unique within a namespace."},
	{Name: "Pod-Selector", Type: "string", Description: "The labels of the pods that the policy is about."},
	{Name: "Age", Type: "string", Description: "The time since the object was created."},
}

func networkPolicyRow(p *networkingv1.NetworkPolicy, now time.Time) []any {
	return []any{p.Name, metav1.FormatLabelSelector(&p.Spec.PodSelector), since(p.CreationTimestamp.Time, now)}
}

var serviceCIDRColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "The name of the range."},
	{Name: "CIDRs", Type: "string", Description: "The ranges of addresses that Services get."},
	{Name: "Age", Type: "string", Description: "The time since the object was created."},
}

func serviceCIDRRow(c *networkingv1.ServiceCIDR, now time.Time) []any {
	return []any{c.Name, strings.Join(c.Spec.CIDRs, ","), since(c.CreationTimestamp.Time, now)}
}

var ipAddressColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "The address."},
	{Name: "ParentRef", Type: "string", Description: "The object that has the address."},
}

func ipAddressRow(a *networkingv1.IPAddress, _ time.Time) []any {
	parent := none
	if ref := a.Spec.ParentRef; ref != nil {
		var parts []string
		for _, part := range []string{ref.Resource, ref.Namespace, ref.Name} {
			if part != "" {
				parts = append(parts, part)
			}
		}
		if ref.Group != "" {
			parts[0] += "." + ref.Group
		}
		parent = strings.Join(parts, "/")
	}
	return []any{a.Name, parent}
}
