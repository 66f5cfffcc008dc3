package podconfig

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/cri"
)

// dnsOf is the pod's /etc/resolv.conf by its dnsPolicy and dnsConfig. All empty: the node's own. The error says that the
// cluster's DNS is not known yet.
func (b *Builder) dnsOf(ctx context.Context, pod *corev1.Pod, node cri.DNS) (cri.DNS, error) {
	policy := pod.Spec.DNSPolicy
	if policy == "" {
		policy = corev1.DNSClusterFirst
	}
	cluster := policy == corev1.DNSClusterFirstWithHostNet || policy == corev1.DNSClusterFirst && !pod.Spec.HostNetwork
	var servers []string
	if cluster {
		var err error
		if servers, err = b.clusterDNS(ctx, pod); err != nil {
			return cri.DNS{}, err
		}
	}
	var dns cri.DNS
	switch {
	case policy == corev1.DNSNone:
	case len(servers) > 0:
		domain := b.ClusterDomain
		dns.Servers = slices.Clone(servers)
		dns.Searches = append([]string{pod.Namespace + ".svc." + domain, "svc." + domain, domain}, node.Searches...)
		dns.Options = []string{"ndots:5"}
	case pod.Spec.DNSConfig == nil:
		return cri.DNS{}, nil // Default, or no cluster DNS to ask: the file of the node as it is
	default:
		dns = cri.DNS{Servers: slices.Clone(node.Servers), Searches: slices.Clone(node.Searches), Options: slices.Clone(node.Options)}
	}
	if c := pod.Spec.DNSConfig; c != nil {
		dns.Servers = append(dns.Servers, c.Nameservers...)
		dns.Searches = append(dns.Searches, c.Searches...)
		for _, o := range c.Options {
			dns.Options = setOption(dns.Options, o)
		}
	}
	dns.Servers, dns.Searches = unique(dns.Servers), unique(dns.Searches)
	return dns, nil
}

// clusterDNS are the servers of a pod that asks the cluster's DNS; none: there are none.
func (b *Builder) clusterDNS(ctx context.Context, pod *corev1.Pod) ([]string, error) {
	if len(b.ClusterDNS) > 0 || b.Services == nil {
		return b.ClusterDNS, nil
	}
	return b.Services.Nameservers(ctx, pod)
}

// setOption puts o in, in place of one of the same name.
func setOption(options []string, o corev1.PodDNSConfigOption) []string {
	text := o.Name
	if o.Value != nil && *o.Value != "" {
		text += ":" + *o.Value
	}
	for i, have := range options {
		if name, _, _ := strings.Cut(have, ":"); name == o.Name {
			options[i] = text
			return options
		}
	}
	return append(options, text)
}

// unique keeps the first of each.
func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
