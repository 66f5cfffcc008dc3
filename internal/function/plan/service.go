package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"minik8s/internal/api/minik8s"
)

// Keeper is who has the EndpointSlices of functions' Services, as their label says.
const Keeper = "function-controller.minik8s.io"

// portName is that of the port of a function's Service.
const portName = "http"

// ServiceOf is the Service of a function that asks for an address. It has no selector: see SliceOf. port is the masters'.
func ServiceOf(f *minik8s.Function, port int32, owner metav1.OwnerReference) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: Service(f.Name),
		Labels:      map[string]string{minik8s.FunctionLabel: Derived(f.Name)},
		Annotations: map[string]string{NameAnnotation: f.Name}, OwnerReferences: []metav1.OwnerReference{owner}},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: portName, Protocol: corev1.ProtocolTCP, Port: minik8s.FunctionServicePort, TargetPort: intstr.FromInt32(port)}}}}
	if f.Spec.Address != minik8s.AddressAuto {
		s.Spec.ClusterIP = f.Spec.Address
	}
	return s
}

// SliceOf has the endpoints of a function's Service: the masters, whether there are instances or not. A master has the call wait for
// an instance, counts it and keeps each instance to its limit, which a packet that goes straight to an instance would go past.
func SliceOf(service *corev1.Service, masters []string, port int32, owner metav1.OwnerReference) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: service.Namespace, Name: service.Name,
		Labels:      map[string]string{discoveryv1.LabelServiceName: service.Name, discoveryv1.LabelManagedBy: Keeper},
		Annotations: map[string]string{NameAnnotation: service.Annotations[NameAnnotation]}, OwnerReferences: []metav1.OwnerReference{owner}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new(portName), Port: &port, Protocol: new(corev1.ProtocolTCP)}}}
	for _, a := range masters {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a},
			Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)}})
	}
	return s
}

// Masters are the addresses of masters, as the EndpointSlices of the API's own Service have them.
func Masters(all []*discoveryv1.EndpointSlice) (out []string) {
	for _, s := range all {
		if s.AddressType != discoveryv1.AddressTypeIPv4 {
			continue
		}
		for _, e := range s.Endpoints {
			out = append(out, e.Addresses...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
