package endpointslice

//lint:file-ignore SA1019 Endpoints are served for those who do not know EndpointSlices

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/podspec"
)

const (
	// managedBy marks the Endpoints that are ours. The name and the value are Kubernetes'.
	managedBy      = "endpoints.kubernetes.io/managed-by"
	endpointsOwner = "endpoint-controller"
	// maxInEndpoints is how many addresses Endpoints have at most.
	maxInEndpoints = 1000
	truncated      = "truncated"
)

// endpointsOf returns a Service's Endpoints, for clients that know no slices.
func endpointsOf(svc *corev1.Service, pods []*corev1.Pod) *corev1.Endpoints {
	subsets := map[string]*corev1.EndpointSubset{}
	for _, pod := range pods {
		if !serves(pod) || pod.DeletionTimestamp != nil && !svc.Spec.PublishNotReadyAddresses {
			continue
		}
		ports := plainPorts(svc, pod)
		if len(ports) == 0 && len(svc.Spec.Ports) > 0 {
			continue
		}
		key := subsetKey(ports)
		if subsets[key] == nil {
			subsets[key] = &corev1.EndpointSubset{Ports: ports}
		}
		s, a := subsets[key], plainAddress(svc, pod)
		if svc.Spec.PublishNotReadyAddresses || ready(pod) {
			s.Addresses = append(s.Addresses, a)
		} else {
			s.NotReadyAddresses = append(s.NotReadyAddresses, a)
		}
	}
	e := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: svc.Namespace, Name: svc.Name, Labels: endpointsLabels(svc)}}
	for _, key := range slices.Sorted(maps.Keys(subsets)) {
		s := subsets[key]
		sortAddresses(s.Addresses)
		sortAddresses(s.NotReadyAddresses)
		e.Subsets = append(e.Subsets, *s)
	}
	if truncate(e.Subsets) {
		e.Annotations = map[string]string{corev1.EndpointsOverCapacity: truncated}
		e.Subsets = slices.DeleteFunc(e.Subsets, func(s corev1.EndpointSubset) bool { return len(s.Addresses)+len(s.NotReadyAddresses) == 0 })
	}
	return e
}

func endpointsLabels(svc *corev1.Service) map[string]string {
	labels := maps.Clone(svc.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	delete(labels, corev1.IsHeadlessService)
	if api.Headless(svc) {
		labels[corev1.IsHeadlessService] = ""
	}
	labels[managedBy] = endpointsOwner
	return labels
}

func plainPorts(svc *corev1.Service, pod *corev1.Pod) []corev1.EndpointPort {
	var out []corev1.EndpointPort
	for i := range svc.Spec.Ports {
		p := &svc.Spec.Ports[i]
		if target := podspec.TargetPort(p, pod); target != 0 {
			out = append(out, corev1.EndpointPort{Name: p.Name, Port: target, Protocol: p.Protocol, AppProtocol: p.AppProtocol})
		}
	}
	return out
}

func subsetKey(ports []corev1.EndpointPort) string {
	all := make([]string, len(ports))
	for i, p := range ports {
		all[i] = fmt.Sprintf("%s/%s/%d/%s", p.Name, p.Protocol, p.Port, text(p.AppProtocol))
	}
	return strings.Join(all, " ")
}

func plainAddress(svc *corev1.Service, pod *corev1.Pod) corev1.EndpointAddress {
	a := corev1.EndpointAddress{IP: addressOf(pod),
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}}
	if pod.Spec.NodeName != "" {
		a.NodeName = new(pod.Spec.NodeName)
	}
	if named(svc, pod) {
		a.Hostname = pod.Spec.Hostname
	}
	return a
}

func sortAddresses(list []corev1.EndpointAddress) {
	slices.SortFunc(list, func(a, b corev1.EndpointAddress) int {
		return cmp.Or(cmp.Compare(a.IP, b.IP), cmp.Compare(string(a.TargetRef.UID), string(b.TargetRef.UID)))
	})
}

// truncate leaves at most maxInEndpoints addresses, rather ready ones, and reports whether there were more.
func truncate(subsets []corev1.EndpointSubset) bool {
	room, cut := maxInEndpoints, false
	limit := func(list []corev1.EndpointAddress) []corev1.EndpointAddress {
		n := min(room, len(list))
		cut = cut || n < len(list)
		room -= n
		return list[:n:n]
	}
	for i := range subsets {
		subsets[i].Addresses = limit(subsets[i].Addresses)
	}
	for i := range subsets {
		subsets[i].NotReadyAddresses = limit(subsets[i].NotReadyAddresses)
	}
	return cut
}
