package validation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
)

// NetworkPolicy checks a NetworkPolicy.
func NetworkPolicy(p *networkingv1.NetworkPolicy) field.ErrorList {
	return networkPolicy(p, nil, metav1validation.LabelSelectorValidationOptions{})
}

// NetworkPolicyUpdate checks what replaces old: ranges of addresses that old has already are taken as they are.
func NetworkPolicyUpdate(p, old *networkingv1.NetworkPolicy) field.ErrorList {
	var known []string
	for _, peers := range peersOf(old) {
		for _, peer := range peers.list {
			if b := peer.IPBlock; b != nil {
				known = append(append(known, b.CIDR), b.Except...)
			}
		}
	}
	var labels metav1validation.LabelSelectorValidationOptions
	labels.AllowInvalidLabelValueInSelector = len(metav1validation.ValidateLabelSelector(&old.Spec.PodSelector, labels, nil)) > 0
	return networkPolicy(p, known, labels)
}

// peerList is the list of peers of a rule, and the name of the direction.
type peerList struct {
	path *field.Path
	list []networkingv1.NetworkPolicyPeer
}

func peersOf(p *networkingv1.NetworkPolicy) []peerList {
	var out []peerList
	for i, r := range p.Spec.Ingress {
		out = append(out, peerList{spec.Child("ingress").Index(i).Child("from"), r.From})
	}
	for i, r := range p.Spec.Egress {
		out = append(out, peerList{spec.Child("egress").Index(i).Child("to"), r.To})
	}
	return out
}

func networkPolicy(p *networkingv1.NetworkPolicy, known []string, labels metav1validation.LabelSelectorValidationOptions) field.ErrorList {
	s := &p.Spec
	errs := metav1validation.ValidateLabelSelector(&s.PodSelector, labels, spec.Child("podSelector"))
	for i, r := range s.Ingress {
		errs = append(errs, policyPorts(r.Ports, spec.Child("ingress").Index(i).Child("ports"))...)
	}
	for i, r := range s.Egress {
		errs = append(errs, policyPorts(r.Ports, spec.Child("egress").Index(i).Child("ports"))...)
	}
	for _, peers := range peersOf(p) {
		for i := range peers.list {
			errs = append(errs, policyPeer(&peers.list[i], known, labels, peers.path.Index(i))...)
		}
	}
	types := spec.Child("policyTypes")
	allowed := []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}
	if len(s.PolicyTypes) > len(allowed) {
		return append(errs, field.Invalid(types, s.PolicyTypes, "may not specify more than two policyTypes"))
	}
	for i, t := range s.PolicyTypes {
		if !slices.Contains(allowed, t) {
			errs = append(errs, field.NotSupported(types.Index(i), t, allowed))
		}
	}
	return errs
}

func policyPorts(ports []networkingv1.NetworkPolicyPort, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range ports {
		errs = append(errs, policyPort(&ports[i], path.Index(i))...)
	}
	return errs
}

func policyPort(p *networkingv1.NetworkPolicyPort, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	protocols := []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}
	if p.Protocol != nil && !slices.Contains(protocols, *p.Protocol) {
		errs = append(errs, field.NotSupported(path.Child("protocol"), *p.Protocol, protocols))
	}
	port, end := path.Child("port"), path.Child("endPort")
	switch {
	case p.Port == nil:
		if p.EndPort != nil {
			errs = append(errs, field.Invalid(end, *p.EndPort, "may not be specified when `port` is not specified"))
		}
	case p.Port.Type == intstr.String:
		if p.EndPort != nil {
			errs = append(errs, field.Invalid(end, *p.EndPort, "may not be specified when `port` is non-numeric"))
		}
		errs = append(errs, say(port, p.Port.StrVal, validation.IsValidPortName(p.Port.StrVal))...)
	default:
		errs = append(errs, say(port, p.Port.IntVal, validation.IsValidPortNum(int(p.Port.IntVal)))...)
		if p.EndPort == nil {
			break
		}
		if *p.EndPort < p.Port.IntVal {
			errs = append(errs, field.Invalid(end, *p.EndPort, "must be greater than or equal to `port`"))
		}
		errs = append(errs, say(end, *p.EndPort, validation.IsValidPortNum(int(*p.EndPort)))...)
	}
	return errs
}

func policyPeer(p *networkingv1.NetworkPolicyPeer, known []string, labels metav1validation.LabelSelectorValidationOptions, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if p.PodSelector != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(p.PodSelector, labels, path.Child("podSelector"))...)
	}
	if p.NamespaceSelector != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(p.NamespaceSelector, labels, path.Child("namespaceSelector"))...)
	}
	selects := p.PodSelector != nil || p.NamespaceSelector != nil
	if p.IPBlock != nil {
		errs = append(errs, ipBlock(p.IPBlock, known, path.Child("ipBlock"))...)
		if selects {
			errs = append(errs, field.Forbidden(path, "may not specify both ipBlock and another peer"))
		}
	} else if !selects {
		errs = append(errs, field.Required(path, "must specify a peer"))
	}
	return errs
}

// ipBlock checks a range and what is taken out of it. Old forms of writing ranges are let in where known has them.
func ipBlock(b *networkingv1.IPBlock, known []string, path *field.Path) field.ErrorList {
	if b.CIDR == "" {
		return field.ErrorList{field.Required(path.Child("cidr"), "")}
	}
	errs := validation.IsValidCIDRForLegacyField(path.Child("cidr"), b.CIDR, true, known)
	_, whole, err := netutils.ParseCIDRSloppy(b.CIDR)
	if err != nil {
		return errs
	}
	for i, text := range b.Except {
		at := path.Child("except").Index(i)
		errs = append(errs, validation.IsValidCIDRForLegacyField(at, text, true, known)...)
		_, part, err := netutils.ParseCIDRSloppy(text)
		if err != nil {
			continue
		}
		bits, _ := whole.Mask.Size()
		if partBits, _ := part.Mask.Size(); !whole.Contains(part.IP) || bits >= partBits {
			errs = append(errs, field.Invalid(at, text, "must be a strict subset of `cidr`"))
		}
	}
	return errs
}

// NetworkPolicyWarnings says which ranges of addresses are written in a way that others may read otherwise.
func NetworkPolicyWarnings(p *networkingv1.NetworkPolicy) []string {
	var out []string
	for _, peers := range peersOf(p) {
		for i, peer := range peers.list {
			b := peer.IPBlock
			if b == nil {
				continue
			}
			path := peers.path.Index(i).Child("ipBlock")
			out = append(out, validation.GetWarningsForCIDR(path.Child("cidr"), b.CIDR)...)
			for j, text := range b.Except {
				out = append(out, validation.GetWarningsForCIDR(path.Child("except").Index(j), text)...)
			}
		}
	}
	return out
}
