package endpointslice

//lint:file-ignore SA1019 Endpoints are served for those who do not know EndpointSlices

import (
	"maps"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
)

// Who keeps a slice, by its label; the names are Kubernetes'.
const (
	sliceKeeper  = "endpointslice-controller.k8s.io"
	mirrorKeeper = "endpointslicemirroring-controller.k8s.io"
	// leaderNote is on Endpoints that were a lock, long ago.
	leaderNote = "control-plane.alpha.kubernetes.io/leader"
)

// mirrored reports whether Endpoints are copied to slices: people wrote them, for a Service without a selector.
func mirrored(e *corev1.Endpoints, svc *corev1.Service) bool {
	if e == nil || svc == nil || selectorOf(svc) != nil {
		return false
	}
	_, lock := e.Annotations[leaderNote]
	return e.Labels[discoveryv1.LabelSkipMirror] != "true" && !lock
}

// copied returns the endpoints that Endpoints name. Of each subset no more are taken than Endpoints of ours would have.
func copied(e *corev1.Endpoints) []group {
	var out []group
	at := map[string]int{}
	add := func(s *corev1.EndpointSubset, a *corev1.EndpointAddress, ready bool) {
		ip, err := netip.ParseAddr(a.IP)
		if err != nil {
			return
		}
		g := group{family: discoveryv1.AddressTypeIPv4, ports: []discoveryv1.EndpointPort{}}
		if ip.Is6() {
			g.family = discoveryv1.AddressTypeIPv6
		}
		for _, p := range s.Ports {
			g.ports = append(g.ports, discoveryv1.EndpointPort{Name: &p.Name, Protocol: &p.Protocol, Port: &p.Port, AppProtocol: p.AppProtocol})
		}
		key := g.key()
		if _, ok := at[key]; !ok {
			at[key] = len(out)
			out = append(out, g)
		}
		endpoint := discoveryv1.Endpoint{Addresses: []string{ip.String()}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
			TargetRef: a.TargetRef, NodeName: a.NodeName}
		if a.Hostname != "" {
			endpoint.Hostname = &a.Hostname
		}
		into := &out[at[key]]
		for i := range into.endpoints {
			if identity(&into.endpoints[i]) == identity(&endpoint) {
				return
			}
		}
		into.endpoints = append(into.endpoints, endpoint)
	}
	for i := range e.Subsets {
		s, room := &e.Subsets[i], maxInEndpoints
		for j := range s.Addresses[:min(room, len(s.Addresses))] {
			add(s, &s.Addresses[j], true)
		}
		room -= min(room, len(s.Addresses))
		for j := range s.NotReadyAddresses[:min(room, len(s.NotReadyAddresses))] {
			add(s, &s.NotReadyAddresses[j], false)
		}
	}
	return out
}

// likeEndpoints is the slice that all slices of mirrored Endpoints are like.
func likeEndpoints(e *corev1.Endpoints) *discoveryv1.EndpointSlice {
	labels := maps.Clone(e.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[discoveryv1.LabelServiceName], labels[discoveryv1.LabelManagedBy] = e.Name, mirrorKeeper
	notes := maps.Clone(e.Annotations)
	if notes == nil {
		notes = map[string]string{}
	}
	delete(notes, corev1.EndpointsLastChangeTriggerTime)
	delete(notes, corev1.LastAppliedConfigAnnotation)
	return &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace,
		GenerateName: e.Name + "-", Labels: labels, Annotations: notes,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(e, api.Endpoints.GVK())}}}
}

// likeService is the slice that all slices of a Service are like.
func likeService(svc *corev1.Service) *discoveryv1.EndpointSlice {
	labels := maps.Clone(svc.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	delete(labels, corev1.IsHeadlessService)
	if api.Headless(svc) {
		labels[corev1.IsHeadlessService] = ""
	}
	labels[discoveryv1.LabelServiceName], labels[discoveryv1.LabelManagedBy] = svc.Name, sliceKeeper
	return &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, ObjectMeta: metav1.ObjectMeta{Namespace: svc.Namespace,
		GenerateName: svc.Name + "-", Labels: labels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(svc, api.Services.GVK())}}}
}
