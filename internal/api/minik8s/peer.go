package minik8s

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Peer is what the other machines of the cluster need to know of a Node. It is read only: another form of the Node, which
// changes much more often than it.
type Peer struct {
	metav1.TypeMeta `json:",inline"`
	// ObjectMeta has the Node's name, uid, version and times, and nothing else.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PeerSpec `json:"spec,omitempty"`
}

// PeerSpec is where a machine and its pods are. What is not known yet is empty.
type PeerSpec struct {
	// Addresses are the machine's internal ones.
	Addresses []string `json:"addresses,omitempty"`
	// PodCIDRs are the ranges of its pods' addresses.
	PodCIDRs []string `json:"podCIDRs,omitempty"`
	// API is where it serves the API, HOST:PORT, if it is a master.
	API string `json:"api,omitempty"`
}

// PeerList is a list of Peers.
type PeerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Peer `json:"items"`
}

// SwaggerDoc returns the text for `kubectl explain`.
func (Peer) SwaggerDoc() map[string]string {
	return map[string]string{
		"":         "Peer is what the other machines of the cluster need to know of a Node. It is read only: another form of the Node.",
		"metadata": "The Node's name, uid, version and times.",
		"spec":     "Where the machine and its pods are.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (PeerSpec) SwaggerDoc() map[string]string {
	return map[string]string{
		"":          "Where a machine and its pods are. What is not known yet is empty.",
		"addresses": "The machine's internal addresses.",
		"podCIDRs":  "The ranges of its pods' addresses.",
		"api":       "Where it serves the API, HOST:PORT, if it is a master.",
	}
}

// DeepCopyInto copies p to out.
func (p *Peer) DeepCopyInto(out *Peer) {
	*out = *p
	p.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Addresses = append([]string(nil), p.Spec.Addresses...)
	out.Spec.PodCIDRs = append([]string(nil), p.Spec.PodCIDRs...)
}

// DeepCopy returns a copy that shares nothing with p.
func (p *Peer) DeepCopy() *Peer {
	if p == nil {
		return nil
	}
	out := &Peer{}
	p.DeepCopyInto(out)
	return out
}

// DeepCopyObject implements runtime.Object.
func (p *Peer) DeepCopyObject() runtime.Object {
	if p == nil {
		return nil
	}
	return p.DeepCopy()
}

// DeepCopyObject implements runtime.Object.
func (l *PeerList) DeepCopyObject() runtime.Object {
	if l == nil {
		return nil
	}
	out := &PeerList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	if l.Items != nil {
		out.Items = make([]Peer, len(l.Items))
		for i := range l.Items {
			l.Items[i].DeepCopyInto(&out.Items[i])
		}
	}
	return out
}
