package plan

import (
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api/minik8s"
)

// Pod is a pod as a peer, and as one that policies isolate if it is here.
type Pod struct {
	Namespace, Name string
	UID             types.UID
	Labels          labels.Set
	Addresses       []netip.Addr // of IPv4
	Ports           []Port       // with names
	Here            bool         // on this node
	// Certain: this node has given it its addresses. Of two pods with one address such a one has it, or else the newer one.
	Certain bool
	Created time.Time
}

// PodOf is a pod on some node; node is this one's name.
func PodOf(p *minik8s.PodAddress, node string) *Pod {
	out := &Pod{Namespace: p.Namespace, Name: p.Name, UID: p.UID, Labels: p.Labels, Here: p.Spec.NodeName == node, Created: p.CreationTimestamp.Time}
	for _, text := range p.Spec.Addresses {
		if a, err := netip.ParseAddr(text); err == nil && a.Is4() {
			out.Addresses = append(out.Addresses, a)
		}
	}
	for _, n := range p.Spec.Ports {
		out.Ports = append(out.Ports, Port{Protocol: ProtocolOf(n.Protocol), First: uint16(n.Port), Last: uint16(n.Port), Name: n.Name})
	}
	return out
}

// Named is the number of the first port of this name and protocol; 0 if the pod has none.
func (p *Pod) Named(protocol byte, name string) uint16 {
	for _, port := range p.Ports {
		if port.Protocol == protocol && port.Name == name {
			return port.First
		}
	}
	return 0
}

// Before reports whether of two pods with the same address this one has it.
func (p *Pod) Before(o *Pod) bool {
	switch {
	case p.Certain != o.Certain:
		return p.Certain
	case !p.Created.Equal(o.Created):
		return p.Created.After(o.Created)
	}
	return p.Namespace+"/"+p.Name < o.Namespace+"/"+o.Name
}
