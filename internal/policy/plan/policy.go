package plan

import (
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Direction is whose traffic a rule is about.
type Direction int

// The directions, as seen from the pod that a policy isolates.
const (
	Ingress Direction = iota
	Egress
)

// Directions are both.
var Directions = [...]Direction{Ingress, Egress}

// String is the direction as a policy names it.
func (d Direction) String() string { return [...]string{"ingress", "egress"}[d] }

// Policy is a NetworkPolicy.
type Policy struct {
	Namespace, Name string
	pods            labels.Selector
	// Rules are what each direction lets through; nil: the policy says nothing of that direction. Without any rules nothing
	// is let through.
	Rules [2]*[]Rule
	// Ignored names, by their paths, ranges of addresses that this cluster has none of.
	Ignored []string
}

// Rule lets through what is from (or to) one of its peers and for one of its ports.
type Rule struct {
	Anyone bool // whoever it is
	Peers  []Peers
	Blocks Ranges
	// Ports are empty for every port, and for protocols without ports.
	Ports []Port
}

// Port is a range of ports of a protocol, or those with a name.
type Port struct {
	Protocol    byte
	First, Last uint16 // 0, 0: all of the protocol
	Name        string // of a port of the pod that is called
}

// Peers are pods, by labels of theirs and of their namespaces.
type Peers struct {
	namespace  string // if no selector says which
	namespaces labels.Selector
	pods       labels.Selector
}

// Of is a policy's meaning. An error is of a selector that the API would not have taken.
func Of(np *networkingv1.NetworkPolicy) (Policy, error) {
	p := Policy{Namespace: np.Namespace, Name: np.Name}
	var err error
	if p.pods, err = metav1.LabelSelectorAsSelector(&np.Spec.PodSelector); err != nil {
		return p, fmt.Errorf("spec.podSelector: %w", err)
	}
	types := np.Spec.PolicyTypes
	if len(types) == 0 {
		types = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(np.Spec.Egress) > 0 {
			types = append(types, networkingv1.PolicyTypeEgress)
		}
	}
	if slices.Contains(types, networkingv1.PolicyTypeIngress) {
		list := make([]Rule, len(np.Spec.Ingress))
		for i, r := range np.Spec.Ingress {
			if list[i], err = p.rule(fmt.Sprintf("spec.ingress[%d].from", i), r.From, r.Ports); err != nil {
				return p, err
			}
		}
		p.Rules[Ingress] = &list
	}
	if slices.Contains(types, networkingv1.PolicyTypeEgress) {
		list := make([]Rule, len(np.Spec.Egress))
		for i, r := range np.Spec.Egress {
			if list[i], err = p.rule(fmt.Sprintf("spec.egress[%d].to", i), r.To, r.Ports); err != nil {
				return p, err
			}
		}
		p.Rules[Egress] = &list
	}
	return p, nil
}

// Selects reports whether the policy is about a pod of its own namespace with these labels.
func (p *Policy) Selects(pod labels.Set) bool { return p.pods.Matches(pod) }

func (p *Policy) rule(path string, peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort) (Rule, error) {
	r := Rule{Anyone: len(peers) == 0}
	for i, peer := range peers {
		at := fmt.Sprintf("%s[%d]", path, i)
		if peer.IPBlock != nil {
			p.block(at+".ipBlock", peer.IPBlock, &r.Blocks)
			continue
		}
		to, err := peersOf(p.Namespace, peer)
		if err != nil {
			return r, fmt.Errorf("%s: %w", at, err)
		}
		if !slices.ContainsFunc(r.Peers, func(o Peers) bool { return o.Key() == to.Key() }) {
			r.Peers = append(r.Peers, to)
		}
	}
	r.Blocks = r.Blocks.united()
	for _, port := range ports {
		if to := portOf(port); !slices.Contains(r.Ports, to) {
			r.Ports = append(r.Ports, to)
		}
	}
	return r, nil
}

func (p *Policy) block(path string, b *networkingv1.IPBlock, out *Ranges) {
	whole, err := netip.ParsePrefix(b.CIDR)
	if err != nil || !whole.Addr().Is4() {
		p.Ignored = append(p.Ignored, path+".cidr "+b.CIDR)
		return
	}
	var except []netip.Prefix
	for i, text := range b.Except {
		part, err := netip.ParsePrefix(text)
		if err != nil || !part.Addr().Is4() { // of another family it takes nothing away
			p.Ignored = append(p.Ignored, fmt.Sprintf("%s.except[%d] %s", path, i, text))
			continue
		}
		except = append(except, part)
	}
	*out = append(*out, rangesOf(whole, except)...)
}

func peersOf(namespace string, peer networkingv1.NetworkPolicyPeer) (out Peers, err error) {
	out.pods = labels.Everything()
	if peer.PodSelector != nil {
		if out.pods, err = metav1.LabelSelectorAsSelector(peer.PodSelector); err != nil {
			return out, fmt.Errorf("podSelector: %w", err)
		}
	}
	if peer.NamespaceSelector == nil {
		out.namespace = namespace
		return out, nil
	}
	if out.namespaces, err = metav1.LabelSelectorAsSelector(peer.NamespaceSelector); err != nil {
		return out, fmt.Errorf("namespaceSelector: %w", err)
	}
	return out, nil
}

// Key is the same for peers that are the same, whatever the state of the cluster.
func (p Peers) Key() string {
	if p.namespaces != nil {
		return "in namespaces with " + p.namespaces.String() + ": " + p.pods.String()
	}
	return "in namespace " + p.namespace + ": " + p.pods.String()
}

// Include reports whether a pod in a namespace with these labels is one of the peers. Of a namespace that is not known, with
// no labels at all (nil), nobody is by a selector of namespaces: what selectors exclude is not known either.
func (p Peers) Include(namespace string, ofNamespace, ofPod labels.Set) bool {
	if p.namespaces == nil {
		return p.namespace == namespace && p.pods.Matches(ofPod)
	}
	return ofNamespace != nil && p.namespaces.Matches(ofNamespace) && p.pods.Matches(ofPod)
}

var protocols = map[corev1.Protocol]byte{corev1.ProtocolTCP: unix.IPPROTO_TCP, corev1.ProtocolUDP: unix.IPPROTO_UDP, corev1.ProtocolSCTP: unix.IPPROTO_SCTP, "": unix.IPPROTO_TCP}

// ProtocolOf is a protocol's number; an empty one is TCP.
func ProtocolOf(p corev1.Protocol) byte { return protocols[p] }

func portOf(p networkingv1.NetworkPolicyPort) (out Port) {
	out.Protocol = unix.IPPROTO_TCP
	if p.Protocol != nil {
		out.Protocol = ProtocolOf(*p.Protocol)
	}
	switch {
	case p.Port == nil:
	case p.Port.Type == intstr.String:
		out.Name = p.Port.StrVal
	default:
		out.First, out.Last = uint16(p.Port.IntVal), uint16(p.Port.IntVal)
		if p.EndPort != nil {
			out.Last = uint16(*p.EndPort)
		}
	}
	return out
}
