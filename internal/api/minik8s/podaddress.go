package minik8s

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// PodAddress is what a NetworkPolicy needs to know of a Pod, on any machine. It is read only: another form of the Pod, which
// changes much more often than it.
type PodAddress struct {
	metav1.TypeMeta `json:",inline"`
	// ObjectMeta has the Pod's namespace, name, uid, version, creation time and labels, and nothing else.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PodAddressSpec `json:"spec,omitempty"`
}

// PodAddressSpec is where a Pod is reached. A Pod that has ended, or has its node's network, has no addresses: what is there
// now is not the Pod's.
type PodAddressSpec struct {
	// NodeName is the node that it runs on; empty until it is known.
	NodeName string `json:"nodeName,omitempty"`
	// Addresses are the Pod's own.
	Addresses []string `json:"addresses,omitempty"`
	// Ports are the ports of its containers that have a name.
	Ports []NamedPort `json:"ports,omitempty"`
}

// NamedPort is a port that has a name.
type NamedPort struct {
	Name     string          `json:"name"`
	Port     int32           `json:"port"`
	Protocol corev1.Protocol `json:"protocol"`
}

// PodAddressList is a list of PodAddresses.
type PodAddressList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PodAddress `json:"items"`
}

// SwaggerDoc returns the text for `kubectl explain`.
func (PodAddress) SwaggerDoc() map[string]string {
	return map[string]string{
		"":         "PodAddress is what a NetworkPolicy needs to know of a Pod, on any machine. It is read only: another form of the Pod.",
		"metadata": "The Pod's namespace, name, uid, version, creation time and labels.",
		"spec":     "Where the Pod is reached.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (PodAddressSpec) SwaggerDoc() map[string]string {
	return map[string]string{
		"":          "Where a Pod is reached. A Pod that has ended, or has its node's network, has no addresses.",
		"nodeName":  "The node that the Pod runs on.",
		"addresses": "The Pod's own addresses.",
		"ports":     "The ports of its containers that have a name.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (NamedPort) SwaggerDoc() map[string]string {
	return map[string]string{
		"":         "A port that has a name.",
		"name":     "The name.",
		"port":     "The number.",
		"protocol": "TCP, UDP or SCTP.",
	}
}

// Equal reports whether two say the same.
func (s *PodAddressSpec) Equal(o *PodAddressSpec) bool {
	return s.NodeName == o.NodeName && slices.Equal(s.Addresses, o.Addresses) && slices.Equal(s.Ports, o.Ports)
}

// DeepCopyInto copies p to out.
func (p *PodAddress) DeepCopyInto(out *PodAddress) {
	*out = *p
	p.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Addresses, out.Spec.Ports = slices.Clone(p.Spec.Addresses), slices.Clone(p.Spec.Ports)
}

// DeepCopy returns a copy that shares nothing with p.
func (p *PodAddress) DeepCopy() *PodAddress {
	if p == nil {
		return nil
	}
	out := &PodAddress{}
	p.DeepCopyInto(out)
	return out
}

// DeepCopyObject implements runtime.Object.
func (p *PodAddress) DeepCopyObject() runtime.Object {
	if p == nil {
		return nil
	}
	return p.DeepCopy()
}

// DeepCopyObject implements runtime.Object.
func (l *PodAddressList) DeepCopyObject() runtime.Object {
	if l == nil {
		return nil
	}
	out := &PodAddressList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	if l.Items != nil {
		out.Items = make([]PodAddress, len(l.Items))
		for i := range l.Items {
			l.Items[i].DeepCopyInto(&out.Items[i])
		}
	}
	return out
}
