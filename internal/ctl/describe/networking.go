package describe

import (
	"fmt"
	"strconv"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
)

func writeIngress(out *sheet, in *networkingv1.Ingress) {
	class := ""
	if in.Spec.IngressClassName != nil {
		class = *in.Spec.IngressClassName
	}
	out.field("Class", class)
	var at []string
	for _, a := range in.Status.LoadBalancer.Ingress {
		at = append(at, a.IP+a.Hostname)
	}
	out.field("Address", strings.Join(at, ", "))
	if b := in.Spec.DefaultBackend; b != nil {
		out.field("Default Backend", backend(b))
	}
	var tls []string
	for _, t := range in.Spec.TLS {
		name := t.SecretName
		if name == "" {
			name = "the gateway's own certificate"
		}
		tls = append(tls, name+" for "+strings.Join(t.Hosts, ", "))
	}
	if len(tls) > 0 {
		out.lines("TLS", tls)
	}
	out.line("Rules:")
	for _, r := range in.Spec.Rules {
		host := r.Host
		if host == "" {
			host = "*"
		}
		out.line("  %s", host)
		if r.HTTP == nil {
			continue
		}
		for i := range r.HTTP.Paths {
			p := &r.HTTP.Paths[i]
			kind := ""
			if p.PathType != nil {
				kind = string(*p.PathType)
			}
			out.line("    %-24s -> %s (%s)", p.Path, backend(&p.Backend), kind)
		}
	}
	if len(in.Spec.Rules) == 0 {
		out.line("  <none>")
	}
}

func backend(b *networkingv1.IngressBackend) string {
	switch {
	case b.Service != nil:
		port := b.Service.Port.Name
		if port == "" {
			port = strconv.Itoa(int(b.Service.Port.Number))
		}
		return "service " + b.Service.Name + ":" + port
	case b.Resource != nil:
		return b.Resource.Kind + " " + b.Resource.Name
	}
	return ""
}

func writeIngressClass(out *sheet, c *networkingv1.IngressClass) {
	out.field("Controller", c.Spec.Controller)
	out.field("Default", strconv.FormatBool(api.IsDefaultIngressClass(c)))
	if p := c.Spec.Parameters; p != nil {
		text := p.Kind + " " + p.Name
		if p.Namespace != nil {
			text += " in the namespace " + *p.Namespace
		}
		out.field("Parameters", text)
	}
}

func writeNetworkPolicy(out *sheet, p *networkingv1.NetworkPolicy) {
	out.field("Pods", selected(&p.Spec.PodSelector))
	for _, t := range p.Spec.PolicyTypes {
		switch t {
		case networkingv1.PolicyTypeIngress:
			var rules []string
			for _, r := range p.Spec.Ingress {
				rules = append(rules, rule("from", r.From, r.Ports))
			}
			out.lines("Lets In", rules)
		case networkingv1.PolicyTypeEgress:
			var rules []string
			for _, r := range p.Spec.Egress {
				rules = append(rules, rule("to", r.To, r.Ports))
			}
			out.lines("Lets Out", rules)
		}
	}
}

// rule says in a line what a rule allows.
func rule(word string, peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort) string {
	var who, at []string
	for _, p := range peers {
		who = append(who, peer(&p))
	}
	for _, p := range ports {
		text := "any port"
		if p.Port != nil {
			text = p.Port.String()
		}
		if p.EndPort != nil {
			text += fmt.Sprintf("-%d", *p.EndPort)
		}
		if p.Protocol != nil {
			text += "/" + string(*p.Protocol)
		}
		at = append(at, text)
	}
	return word + " " + orAny(who, "anywhere") + ", at " + orAny(at, "any port")
}

func orAny(list []string, any string) string {
	if len(list) == 0 {
		return any
	}
	return strings.Join(list, " or ")
}

func peer(p *networkingv1.NetworkPolicyPeer) string {
	if b := p.IPBlock; b != nil {
		if len(b.Except) == 0 {
			return b.CIDR
		}
		return b.CIDR + " except " + strings.Join(b.Except, ", ")
	}
	text := "all pods"
	if p.PodSelector != nil {
		text = selected(p.PodSelector)
	}
	if p.NamespaceSelector == nil {
		return text + " of this namespace"
	}
	if s := metav1.FormatLabelSelector(p.NamespaceSelector); s != "<none>" {
		return text + " of namespaces with " + s
	}
	return text + " of all namespaces"
}

// selected names the pods that a selector finds.
func selected(s *metav1.LabelSelector) string {
	text := metav1.FormatLabelSelector(s)
	if text == "<none>" {
		return "all pods"
	}
	return "pods with " + text
}
