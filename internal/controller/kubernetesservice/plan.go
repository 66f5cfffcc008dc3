package kubernetesservice

//lint:file-ignore SA1019 Endpoints are served for those who do not know EndpointSlices

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
)

const (
	portName = "https"
	port     = 443
	// keeper marks the slices that are ours.
	keeper = "kubernetes-service.minik8s.io"
)

// Service returns the Service default/kubernetes; address is the first of the service range, target the API's port.
func Service(address netip.Addr, target int32) *corev1.Service {
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: api.KubernetesService,
			Labels: map[string]string{"component": "apiserver", "provider": "kubernetes"}},
		Spec: corev1.ServiceSpec{ClusterIP: address.String(), ClusterIPs: []string{address.String()}, Type: corev1.ServiceTypeClusterIP,
			Ports: []corev1.ServicePort{{Name: portName, Protocol: corev1.ProtocolTCP, Port: port}}},
	}
	svc.Spec.Ports[0].TargetPort.IntVal = target
	return svc
}

// masters are the addresses of the APIs that Nodes announce, by port. silent are those of Nodes of which nothing is heard.
func masters(nodes []*corev1.Node) (heard, silent map[int32][]netip.Addr) {
	heard, silent = map[int32][]netip.Addr{}, map[int32][]netip.Addr{}
	for _, n := range nodes {
		at, err := netip.ParseAddrPort(announced(n))
		if err != nil || !at.Addr().Is4() {
			continue
		}
		into := heard
		if unheard(n) {
			into = silent
		}
		into[int32(at.Port())] = append(into[int32(at.Port())], at.Addr())
	}
	for _, m := range []map[int32][]netip.Addr{heard, silent} {
		for p := range m {
			slices.SortFunc(m[p], netip.Addr.Compare)
			m[p] = slices.Compact(m[p])
		}
	}
	return heard, silent
}

// announced is where the master of a Node serves the API; empty if it is no master's.
func announced(n *corev1.Node) string {
	if _, ok := n.Labels[api.ControlPlane]; !ok || n.DeletionTimestamp != nil {
		return ""
	}
	return n.Annotations[api.APIAddressAnnotation]
}

// wanted returns the Endpoints and slices for these masters.
func wanted(at map[int32][]netip.Addr) (*corev1.Endpoints, []*discoveryv1.EndpointSlice) {
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: api.KubernetesService}
	e := &corev1.Endpoints{ObjectMeta: meta}
	e.Labels = map[string]string{discoveryv1.LabelSkipMirror: "true"} // its slices are here
	var all []*discoveryv1.EndpointSlice
	ports := slices.Sorted(maps.Keys(at))
	slices.SortStableFunc(ports, func(a, b int32) int { return len(at[b]) - len(at[a]) }) // that of most masters first
	for i, p := range ports {
		subset := corev1.EndpointSubset{Ports: []corev1.EndpointPort{{Name: portName, Port: p, Protocol: corev1.ProtocolTCP}}}
		s := &discoveryv1.EndpointSlice{ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4,
			Ports: []discoveryv1.EndpointPort{{Name: new(portName), Port: &p, Protocol: new(corev1.ProtocolTCP)}}}
		if i > 0 {
			s.Name += fmt.Sprintf("-%d", p)
		}
		s.Labels = map[string]string{discoveryv1.LabelServiceName: api.KubernetesService, discoveryv1.LabelManagedBy: keeper}
		for _, a := range at[p] {
			subset.Addresses = append(subset.Addresses, corev1.EndpointAddress{IP: a.String()})
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a.String()},
				Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)}})
		}
		e.Subsets = append(e.Subsets, subset)
		all = append(all, s)
	}
	return e, all
}

// changedMaster reports whether a Node's change is one of the masters.
func changedMaster(old, now *corev1.Node) bool {
	state := func(n *corev1.Node) string {
		if n == nil {
			return ""
		}
		at := announced(n)
		if at != "" && unheard(n) {
			at += " is silent"
		}
		return at
	}
	return state(old) != state(now)
}

// unheard reports whether nothing was heard of a Node's kubelet for a while.
func unheard(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionUnknown || c.Reason == api.NodeSilent
		}
	}
	return false
}
