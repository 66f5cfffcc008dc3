package placement

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Code is the filter by which a node refuses a pod. Some filters have two codes, where people have to fix different
// things.
type Code string

// The codes, in the order of the filters. Each node gets the code of the first filter that refuses.
const (
	Closed             Code = "Closed"             // cordoned, or not ready
	OtherNode          Code = "OtherNode"          // spec.nodeName is another node
	Taint              Code = "Taint"              // a taint that the pod does not tolerate
	NodeLabels         Code = "NodeLabels"         // nodeSelector, node affinity
	HostPort           Code = "HostPort"           // taken by another pod
	Resources          Code = "Resources"          // too little is free, or too many pods are there
	Spread             Code = "Spread"             // topologySpreadConstraints
	PodAffinity        Code = "PodAffinity"        // none of the pods that it must be with is there
	PodAntiAffinity    Code = "PodAntiAffinity"    // a pod that it must be apart from is there
	OthersAntiAffinity Code = "OthersAntiAffinity" // a pod is there that must be apart from it
	refusalsAnnotation      = "scheduler.minik8s.io/refusals"
	namedNodes              = 5
)

// Refusals says why a pod has no node: for each code, which nodes refuse it. The scheduler publishes it on the pod,
// beside the text of the pod's condition, for programs that explain it.
type Refusals map[Code]Refused

// Refused is the nodes that refuse a pod with one code.
type Refused struct {
	Count int `json:"count"`
	// Nodes names some of them.
	Nodes []string `json:"nodes"`
	// OnlyLabels names some of the nodes that only lack the labels.
	OnlyLabels []string `json:"onlyLabels,omitempty"`
}

// Add counts a node. onlyLabels says that no other filter would have refused.
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

// Equal reports whether both contain the same nodes.
func (r Refused) Equal(other Refused) bool {
	return r.Count == other.Count && slices.Equal(r.Nodes, other.Nodes) && slices.Equal(r.OnlyLabels, other.OnlyLabels)
}

// Publish writes the refusals on a pod. If there are none, earlier ones are removed.
func (r Refusals) Publish(pod *corev1.Pod) {
	if len(r) == 0 {
		delete(pod.Annotations, refusalsAnnotation)
		return
	}
	text, err := json.Marshal(r)
	if err != nil {
		return // cannot happen: strings and numbers can always be JSON
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[refusalsAnnotation] = string(text)
}

// RefusalsOf reads what the scheduler published on a pod; none if it published nothing or it cannot be read.
func RefusalsOf(pod *corev1.Pod) Refusals {
	var r Refusals
	if json.Unmarshal([]byte(pod.Annotations[refusalsAnnotation]), &r) != nil {
		return nil
	}
	return r
}
