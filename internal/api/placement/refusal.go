package placement

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Code is the filter by which a node refuses a pod, or the half of one where people have to do different things
// about them.
type Code string

// The codes, in the order in which the filters are asked: each node has the first that refuses.
const (
	Closed             Code = "Closed"             // cordoned, or not ready
	OtherNode          Code = "OtherNode"          // spec.nodeName is another
	Taint              Code = "Taint"              // a taint that the pod does not tolerate
	NodeLabels         Code = "NodeLabels"         // nodeSelector, node affinity
	HostPort           Code = "HostPort"           // taken by another pod
	Resources          Code = "Resources"          // too little is free, or too many pods are there
	Spread             Code = "Spread"             // topologySpreadConstraints
	PodAffinity        Code = "PodAffinity"        // none of the pods that it wants to be with
	PodAntiAffinity    Code = "PodAntiAffinity"    // one of the pods that it wants to be apart from
	OthersAntiAffinity Code = "OthersAntiAffinity" // a pod that wants to be apart from it
	refusalsAnnotation      = "scheduler.minik8s.io/refusals"
	namedNodes              = 5
)

// Refusals are why a pod has no node: by code, which nodes refuse it. The scheduler publishes them on the pod beside
// the sentence of its condition, for programs that explain it.
type Refusals map[Code]Refused

// Refused is the nodes that refuse a pod by one code.
type Refused struct {
	Count int `json:"count"`
	// Nodes names a few of them.
	Nodes []string `json:"nodes"`
	// OnlyLabels names a few of those that lack the labels and nothing else.
	OnlyLabels []string `json:"onlyLabels,omitempty"`
}

// Add counts a node; onlyLabels says that no other filter would have refused.
func (r Refusals) Add(code Code, node string, onlyLabels bool) {
	by := r[code]
	by.Count++
	if len(by.Nodes) < namedNodes {
		by.Nodes = append(by.Nodes, node)
	}
	if onlyLabels && len(by.OnlyLabels) < namedNodes {
		by.OnlyLabels = append(by.OnlyLabels, node)
	}
	r[code] = by
}

// Equal says whether both are the same nodes.
func (r Refused) Equal(other Refused) bool {
	return r.Count == other.Count && slices.Equal(r.Nodes, other.Nodes) && slices.Equal(r.OnlyLabels, other.OnlyLabels)
}

// Publish writes them on a pod. With none, nothing is left of earlier ones.
func (r Refusals) Publish(pod *corev1.Pod) {
	if len(r) == 0 {
		delete(pod.Annotations, refusalsAnnotation)
		return
	}
	text, err := json.Marshal(r)
	if err != nil {
		return // strings and numbers have a form in JSON
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[refusalsAnnotation] = string(text)
}

// RefusalsOf reads what the scheduler has published on a pod; none if it has not, or cannot be read.
func RefusalsOf(pod *corev1.Pod) Refusals {
	var r Refusals
	if json.Unmarshal([]byte(pod.Annotations[refusalsAnnotation]), &r) != nil {
		return nil
	}
	return r
}
