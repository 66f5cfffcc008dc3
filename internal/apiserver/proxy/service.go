package proxy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Endpoint is one of a Service's endpoints: a port of a pod in the Service's namespace.
type Endpoint struct {
	Address, Pod string
	Port         int32
}

// OfService returns the ready endpoints of the port that the target names, by its name or number, in the slices of a
// Service. As in Kubernetes, a port without a name is meant where none is given. Endpoints that are no pods are left out:
// whoever may write EndpointSlices could make the API server connect to any address. The error is 503 if there are none.
func (t Target) OfService(svc *corev1.Service, list []*discoveryv1.EndpointSlice) ([]Endpoint, error) {
	port, err := t.servicePort(svc)
	if err != nil {
		return nil, err
	}
	var out []Endpoint
	others := 0
	for _, s := range list {
		number := portOf(s, port)
		if number == 0 {
			continue
		}
		for _, e := range s.Endpoints {
			if len(e.Addresses) == 0 || e.Conditions.Ready != nil && !*e.Conditions.Ready {
				continue
			}
			ref := e.TargetRef
			if ref == nil || ref.Kind != "Pod" || ref.Namespace != svc.Namespace {
				others++
				continue
			}
			out = append(out, Endpoint{Address: e.Addresses[0], Pod: ref.Name, Port: number})
		}
	}
	switch {
	case len(out) > 0:
		return out, nil
	case others > 0:
		return nil, t.unavailable("its endpoints are not pods of its namespace, and to nothing else does the API server connect")
	case svc.Spec.Type == corev1.ServiceTypeExternalName:
		return nil, t.unavailable("it is a name for " + svc.Spec.ExternalName + ", and has no endpoints")
	}
	return nil, t.unavailable(fmt.Sprintf("no endpoint of its port %s is ready", shown(port)))
}

// unavailable begins as Kubernetes words it, since people search for that.
func (t Target) unavailable(why string) error {
	return apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q: %s", t.id, why))
}

func (t Target) servicePort(svc *corev1.Service) (corev1.ServicePort, error) {
	tcp := slices.DeleteFunc(slices.Clone(svc.Spec.Ports), func(p corev1.ServicePort) bool { return p.Protocol != "" && p.Protocol != corev1.ProtocolTCP })
	for _, p := range tcp {
		if n, err := strconv.ParseInt(t.Port, 10, 64); p.Name == t.Port || err == nil && int64(p.Port) == n {
			return p, nil
		}
	}
	var have []string
	for _, p := range tcp {
		have = append(have, shown(p))
	}
	if len(have) == 0 {
		return corev1.ServicePort{}, t.unavailable("it has no TCP port")
	}
	if t.Port == "" {
		return corev1.ServicePort{}, t.unavailable(fmt.Sprintf("its ports have names: say which one, as %s:PORT; it has %s", svc.Name, strings.Join(have, ", ")))
	}
	return corev1.ServicePort{}, apierrors.NewServiceUnavailable(fmt.Sprintf("no service port %s found for service %q; it has %s",
		t.Port, svc.Name, strings.Join(have, ", ")))
}

func shown(p corev1.ServicePort) string {
	if p.Name == "" {
		return strconv.Itoa(int(p.Port))
	}
	return fmt.Sprintf("%s (%d)", p.Name, p.Port)
}

// portOf is the number in a slice of a Service's port; 0 if it has none.
func portOf(s *discoveryv1.EndpointSlice, p corev1.ServicePort) int32 {
	for _, q := range s.Ports {
		named := q.Name == nil && p.Name == "" || q.Name != nil && *q.Name == p.Name
		if named && (q.Protocol == nil || *q.Protocol == corev1.ProtocolTCP) && q.Port != nil {
			return *q.Port
		}
	}
	return 0
}
