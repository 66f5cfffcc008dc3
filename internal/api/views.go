package api

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/api/podspec"
)

// View makes a kind another version of a stored kind: the same objects, under another group and version.
type View struct {
	Of *Kind
	// Shown converts a stored object to this version, and Stored converts it back; a version that is read only has none.
	// Both return a new object, which may share data with the old one.
	Shown, Stored func(Object) Object
	// Same reports whether two versions of a stored object are shown alike, but for the version: then a watch says nothing
	// of the step from one to the other. Nil: each write is shown.
	Same func(a, b Object) bool
	// Fields maps the names of field selectors in this version to those of the stored version.
	Fields map[string]string
}

// EventsV1 are Events in the newer API.
var EventsV1 = &Kind{
	Group: "events.k8s.io", Version: "v1", Kind: "Event", Plural: "events", Singular: "event",
	ShortNames: []string{"ev"}, Namespaced: true,
	New:     func() Object { return &eventsv1.Event{} },
	NewList: func() runtime.Object { return &eventsv1.EventList{} },
	View: &View{Of: Events,
		Shown:  func(obj Object) Object { return newEvent(obj.(*corev1.Event)) },
		Stored: func(obj Object) Object { return coreEvent(obj.(*eventsv1.Event)) },
		Fields: map[string]string{
			"regarding.kind": "involvedObject.kind", "regarding.namespace": "involvedObject.namespace", "regarding.name": "involvedObject.name",
			"regarding.uid": "involvedObject.uid", "regarding.apiVersion": "involvedObject.apiVersion",
			"regarding.resourceVersion": "involvedObject.resourceVersion", "regarding.fieldPath": "involvedObject.fieldPath",
			"reportingController": "reportingComponent",
		}},
}

// Peers are Nodes in the form that every machine of the cluster follows. Each writes its own Node now and then, so that all
// together would be told of all of them by the square of their number.
var Peers = &Kind{
	Group: minik8s.GroupVersion.Group, Version: minik8s.GroupVersion.Version, Kind: "Peer", Plural: "peers", Singular: "peer",
	Verbs:   []string{"get", "list", "watch"},
	New:     func() Object { return &minik8s.Peer{} },
	NewList: func() runtime.Object { return &minik8s.PeerList{} },
	View: &View{Of: Nodes,
		Shown: func(obj Object) Object { return peerOf(obj.(*corev1.Node)) },
		Same: func(a, b Object) bool {
			x, y := peerOf(a.(*corev1.Node)), peerOf(b.(*corev1.Node))
			return x.UID == y.UID && x.DeletionTimestamp.Equal(y.DeletionTimestamp) && slices.Equal(x.Spec.Addresses, y.Spec.Addresses) &&
				slices.Equal(x.Spec.PodCIDRs, y.Spec.PodCIDRs) && x.Spec.API == y.Spec.API
		}},
}

// PodAddresses are Pods in the form that every machine of the cluster follows while there is a NetworkPolicy: whom a policy
// lets in is said by labels, and the packets have addresses.
var PodAddresses = &Kind{
	Group: minik8s.GroupVersion.Group, Version: minik8s.GroupVersion.Version, Kind: "PodAddress", Plural: "podaddresses", Singular: "podaddress",
	Namespaced: true,
	Verbs:      []string{"get", "list", "watch"},
	New:        func() Object { return &minik8s.PodAddress{} },
	NewList:    func() runtime.Object { return &minik8s.PodAddressList{} },
	View: &View{Of: Pods,
		Shown: func(obj Object) Object { return PodAddressOf(obj.(*corev1.Pod)) },
		Same: func(a, b Object) bool {
			x, y := PodAddressOf(a.(*corev1.Pod)), PodAddressOf(b.(*corev1.Pod))
			return x.UID == y.UID && maps.Equal(x.Labels, y.Labels) && x.Spec.Equal(&y.Spec)
		}},
}

// Views lists the kinds that are another version of a stored kind.
var Views = []*Kind{EventsV1, Peers, PodAddresses, HorizontalPodAutoscalersV1, HorizontalPodAutoscalersV2beta2}

// Named are the kinds that people have words for: the stored ones, and the views that have another name.
var Named = append(slices.Clone(Kinds), Peers, PodAddresses)

func peerOf(n *corev1.Node) *minik8s.Peer {
	out := &minik8s.Peer{ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion,
		CreationTimestamp: n.CreationTimestamp, DeletionTimestamp: n.DeletionTimestamp}}
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			out.Spec.Addresses = append(out.Spec.Addresses, a.Address)
		}
	}
	if out.Spec.PodCIDRs = n.Spec.PodCIDRs; len(out.Spec.PodCIDRs) == 0 && n.Spec.PodCIDR != "" {
		out.Spec.PodCIDRs = []string{n.Spec.PodCIDR}
	}
	if _, master := n.Labels[ControlPlane]; master {
		out.Spec.API = n.Annotations[APIAddressAnnotation]
	}
	return out
}

// PodAddressOf is the form of a Pod as a PodAddress; it shares data with it.
func PodAddressOf(p *corev1.Pod) *minik8s.PodAddress {
	out := &minik8s.PodAddress{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
		CreationTimestamp: p.CreationTimestamp, Labels: p.Labels}, Spec: minik8s.PodAddressSpec{NodeName: p.Spec.NodeName}}
	if p.Spec.HostNetwork || podspec.Finished(p.Status.Phase) {
		return out
	}
	for _, ip := range p.Status.PodIPs {
		out.Spec.Addresses = append(out.Spec.Addresses, ip.IP)
	}
	if len(out.Spec.Addresses) == 0 && p.Status.PodIP != "" {
		out.Spec.Addresses = []string{p.Status.PodIP}
	}
	for _, c := range podspec.Containers(p) {
		if podspec.InitContainer(p, c.Name) != nil && !podspec.IsSidecar(c) {
			continue // it has ended when somebody could call
		}
		for _, port := range c.Ports {
			if port.Name != "" {
				out.Spec.Ports = append(out.Spec.Ports, minik8s.NamedPort{Name: port.Name, Port: port.ContainerPort, Protocol: port.Protocol})
			}
		}
	}
	return out
}

func newEvent(e *corev1.Event) *eventsv1.Event {
	out := &eventsv1.Event{ObjectMeta: e.ObjectMeta, EventTime: e.EventTime, ReportingController: e.ReportingController, ReportingInstance: e.ReportingInstance,
		Action: e.Action, Reason: e.Reason, Regarding: e.InvolvedObject, Related: e.Related, Note: e.Message, Type: e.Type,
		DeprecatedSource: e.Source, DeprecatedFirstTimestamp: e.FirstTimestamp, DeprecatedLastTimestamp: e.LastTimestamp, DeprecatedCount: e.Count}
	if e.Series != nil {
		out.Series = &eventsv1.EventSeries{Count: e.Series.Count, LastObservedTime: e.Series.LastObservedTime}
	}
	return out
}

func coreEvent(e *eventsv1.Event) *corev1.Event {
	out := &corev1.Event{ObjectMeta: e.ObjectMeta, EventTime: e.EventTime, ReportingController: e.ReportingController, ReportingInstance: e.ReportingInstance,
		Action: e.Action, Reason: e.Reason, InvolvedObject: e.Regarding, Related: e.Related, Message: e.Note, Type: e.Type,
		Source: e.DeprecatedSource, FirstTimestamp: e.DeprecatedFirstTimestamp, LastTimestamp: e.DeprecatedLastTimestamp, Count: e.DeprecatedCount}
	if e.Series != nil {
		out.Series = &corev1.EventSeries{Count: e.Series.Count, LastObservedTime: e.Series.LastObservedTime}
	}
	return out
}
