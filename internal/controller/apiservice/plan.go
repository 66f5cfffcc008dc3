package apiservice

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"minik8s/internal/api"
)

// verdict is what the condition Available is to say.
type verdict struct {
	status          apiregistrationv1.ConditionStatus
	reason, message string
}

func missing(reason, format string, args ...any) verdict {
	return verdict{apiregistrationv1.ConditionFalse, reason, fmt.Sprintf(format, args...)}
}

// passed is said of a Service that has answered.
var passed = verdict{apiregistrationv1.ConditionTrue, "Passed", "all checks passed"}

// local is said of what the cluster serves itself.
var local = verdict{apiregistrationv1.ConditionTrue, "Local", "Local APIServices are always available"}

// judge says what can be known of an APIService without asking its Service, which is nil if it does not exist; ask: the
// rest is known by asking.
func judge(a *apiregistrationv1.APIService, svc *corev1.Service, list []*discoveryv1.EndpointSlice) (v verdict, ask bool) {
	to := a.Spec.Service
	switch {
	case to == nil:
		return local, false
	case svc == nil:
		return missing("ServiceNotFound", "service/%s in %q is not present", to.Name, to.Namespace), false
	case svc.Spec.Type != corev1.ServiceTypeClusterIP:
		return verdict{}, true
	}
	i := slices.IndexFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool { return to.Port != nil && p.Port == *to.Port })
	if i < 0 {
		return missing("ServicePortError", "service/%s in %q is not listening on port %d", to.Name, to.Namespace, *to.Port), false
	}
	if len(list) == 0 {
		return missing("EndpointsNotFound", "cannot find endpointslices for service/%s in %q", to.Name, to.Namespace), false
	}
	port := svc.Spec.Ports[i].Name
	if !slices.ContainsFunc(list, func(s *discoveryv1.EndpointSlice) bool { return ready(s, port) }) {
		return missing("MissingEndpoints", "endpointslices for service/%s in %q have no addresses with port name %q", to.Name, to.Namespace, port), false
	}
	return verdict{}, true
}

// ready reports whether a slice has a ready endpoint with the port of this name.
func ready(s *discoveryv1.EndpointSlice, port string) bool {
	return slices.ContainsFunc(s.Ports, func(p discoveryv1.EndpointPort) bool {
		return p.Port != nil && (p.Name == nil && port == "" || p.Name != nil && *p.Name == port)
	}) && slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool {
		return e.Conditions.Ready == nil || *e.Conditions.Ready
	})
}

// surplus reports whether an APIService was made for a version that is served here, as it stands.
func surplus(a *apiregistrationv1.APIService) bool {
	return a.Labels[api.AutomanagedLabel] == api.Automanaged && a.Spec.Service == nil
}
