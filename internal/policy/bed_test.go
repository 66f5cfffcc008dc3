package policy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"minik8s/internal/nft"
	"minik8s/internal/policy/plan"
)

const (
	here  = "n1"
	links = "mkab12"
	table = "minik8s-services-ab12"
)

// np makes a policy in a namespace for the pods with a label like app=web; empty: all.
func np(namespace, name, pods string, change ...func(*networkingv1.NetworkPolicySpec)) *networkingv1.NetworkPolicy {
	p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if pods != "" {
		p.Spec.PodSelector = *with(pods)
	}
	for _, c := range change {
		c(&p.Spec)
	}
	return p
}

// with is a selector of labels: a=b,c=d.
func with(text string) *metav1.LabelSelector {
	s := &metav1.LabelSelector{}
	for _, one := range strings.Split(text, ",") {
		if k, v, ok := strings.Cut(one, "="); ok {
			if s.MatchLabels == nil {
				s.MatchLabels = map[string]string{}
			}
			s.MatchLabels[k] = v
		}
	}
	return s
}

type npPeer = networkingv1.NetworkPolicyPeer
type npPort = networkingv1.NetworkPolicyPort

func pods(text string) npPeer     { return npPeer{PodSelector: with(text)} }
func inSpaces(text string) npPeer { return npPeer{NamespaceSelector: with(text)} }
func both(ns, pods string) npPeer {
	return npPeer{NamespaceSelector: with(ns), PodSelector: with(pods)}
}
func block(cidr string, except ...string) npPeer {
	return npPeer{IPBlock: &networkingv1.IPBlock{CIDR: cidr, Except: except}}
}

// ports are like 80, 53/UDP, http, 100-200, /SCTP.
func ports(list ...string) (out []npPort) {
	for _, text := range list {
		number, protocol, ok := strings.Cut(text, "/")
		p := npPort{}
		if ok {
			of := corev1.Protocol(protocol)
			p.Protocol = &of
		}
		var first, last int32
		if n, _ := fmt.Sscanf(number, "%d-%d", &first, &last); n > 0 { //nolint:errcheck // how many were read says it
			of := intstr.FromInt32(first)
			if p.Port = &of; n == 2 {
				p.EndPort = &last
			}
		} else if number != "" {
			of := intstr.FromString(number)
			p.Port = &of
		}
		out = append(out, p)
	}
	return out
}

func in(ports []npPort, peers ...npPeer) func(*networkingv1.NetworkPolicySpec) {
	return func(s *networkingv1.NetworkPolicySpec) {
		s.Ingress = append(s.Ingress, networkingv1.NetworkPolicyIngressRule{From: peers, Ports: ports})
		typed(networkingv1.PolicyTypeIngress)(s)
	}
}

func out(ports []npPort, peers ...npPeer) func(*networkingv1.NetworkPolicySpec) {
	return func(s *networkingv1.NetworkPolicySpec) {
		s.Egress = append(s.Egress, networkingv1.NetworkPolicyEgressRule{To: peers, Ports: ports})
		typed(networkingv1.PolicyTypeEgress)(s)
	}
}

// typed adds to the policyTypes.
func typed(t ...networkingv1.PolicyType) func(*networkingv1.NetworkPolicySpec) {
	return func(s *networkingv1.NetworkPolicySpec) { s.PolicyTypes = union(s.PolicyTypes, t) }
}

func union[T comparable](list, more []T) []T {
	for _, x := range more {
		if !slices.Contains(list, x) {
			list = append(list, x)
		}
	}
	return list
}

const (
	ingress = networkingv1.PolicyTypeIngress
	egress  = networkingv1.PolicyTypeEgress
)

// cluster is what upstream's tests of policies begin with: the pods a, b and c in the namespaces x, y and z, which serve
// http on 80 and more on 81. All are on this node but those of z.
type cluster struct {
	*state
	pods map[string]*plan.Pod // by namespace/name
}

func newCluster() cluster {
	c := cluster{newState(links), map[string]*plan.Pod{}}
	all := changes{namespaces: map[string]labels.Set{}, pods: map[types.NamespacedName]*plan.Pod{}}
	for i, ns := range []string{"x", "y", "z"} {
		all.namespaces[ns] = labels.Set{"ns": ns, "kubernetes.io/metadata.name": ns}
		for j, name := range []string{"a", "b", "c"} {
			p := &plan.Pod{Namespace: ns, Name: name, UID: types.UID(ns + name), Labels: labels.Set{"pod": name}, Here: ns != "z",
				Addresses: []netip.Addr{netip.AddrFrom4([4]byte{10, 244, byte(i), byte(j + 1)})},
				Ports:     []plan.Port{{Protocol: 6, First: 80, Last: 80, Name: "http"}, {Protocol: 17, First: 81, Last: 81, Name: "serve-81-udp"}}}
			if name == "c" {
				p.Ports[0].First = 81 // the same name, another number
			}
			all.pods[types.NamespacedName{Namespace: ns, Name: name}] = p
			c.pods[ns+"/"+name] = p
		}
	}
	c.change(all)
	return c
}

func (c cluster) put(list ...*networkingv1.NetworkPolicy) (edit nft.Edit) {
	all := changes{policies: map[types.NamespacedName]*plan.Policy{}}
	for _, np := range list {
		p, err := plan.Of(np)
		if err != nil {
			panic(err)
		}
		all.policies[types.NamespacedName{Namespace: np.Namespace, Name: np.Name}] = &p
	}
	return c.change(all)
}

// address is that of a pod, or what is written.
func (c cluster) address(of string) netip.Addr {
	if p := c.pods[of]; p != nil {
		return p.Addresses[0]
	}
	return netip.MustParseAddr(of)
}

// link is the name of the link to an address.
func (c cluster) link(of string) string {
	if p := c.pods[of]; p != nil && p.Here {
		return links + strings.ReplaceAll(of, "/", "")
	}
	return "eth0"
}

// passes sends the first packet from one to another for a port like 80, 81/UDP, or /ICMP.
func (c cluster) passes(t *testing.T, from, to, port string, change ...func(*nft.Packet)) bool {
	t.Helper()
	number, protocol, _ := strings.Cut(port, "/")
	p := nft.Packet{Protocol: map[string]byte{"": 6, "TCP": 6, "UDP": 17, "SCTP": 132, "ICMP": 1}[protocol], In: c.link(from), Out: c.link(to),
		From: netip.AddrPortFrom(c.address(from), 40000)}
	var n uint16
	fmt.Sscan(number, &n) //nolint:errcheck // none is 0
	p.To = netip.AddrPortFrom(c.address(to), n)
	for _, f := range change {
		f(&p)
	}
	_, outcome, err := nft.NewWalker(c.table(table), func(netip.Addr) bool { return false }).Send(nft.Forward, p)
	if err != nil {
		t.Fatal(err)
	}
	return outcome == nft.Passes
}
