package services

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/kubelet/cri"
)

// seen are the Services whose variables a pod gets, in the order of their names. A Service of the pod's namespace does not
// hide that of the API.
func seen(all []*corev1.Service, namespace string, links bool) []*corev1.Service {
	var out []*corev1.Service
	for _, svc := range all {
		ofAPI := svc.Namespace == metav1.NamespaceDefault && svc.Name == api.KubernetesService
		own := links && svc.Namespace == namespace && svc.Name != api.KubernetesService
		if (ofAPI || own) && api.HasClusterIP(svc) && svc.Spec.ClusterIP != "" && len(svc.Spec.Ports) > 0 {
			out = append(out, svc)
		}
	}
	slices.SortFunc(out, func(a, b *corev1.Service) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// variables are those of one Service: host and ports, and the older form that Docker's links had.
func variables(svc *corev1.Service) []cri.EnvVar {
	prefix, ip := variable(svc.Name), svc.Spec.ClusterIP
	first := strconv.Itoa(int(svc.Spec.Ports[0].Port))
	out := []cri.EnvVar{{Name: prefix + "_SERVICE_HOST", Value: ip}, {Name: prefix + "_SERVICE_PORT", Value: first}}
	for _, p := range svc.Spec.Ports {
		if p.Name != "" {
			out = append(out, cri.EnvVar{Name: prefix + "_SERVICE_PORT_" + variable(p.Name), Value: strconv.Itoa(int(p.Port))})
		}
	}
	for i, p := range svc.Spec.Ports {
		number, protocol := strconv.Itoa(int(p.Port)), cmp.Or(string(p.Protocol), string(corev1.ProtocolTCP))
		url := strings.ToLower(protocol) + "://" + net.JoinHostPort(ip, number)
		if i == 0 {
			out = append(out, cri.EnvVar{Name: prefix + "_PORT", Value: url})
		}
		at := fmt.Sprintf("%s_PORT_%s_%s", prefix, number, strings.ToUpper(protocol))
		out = append(out, cri.EnvVar{Name: at, Value: url}, cri.EnvVar{Name: at + "_PROTO", Value: strings.ToLower(protocol)},
			cri.EnvVar{Name: at + "_PORT", Value: number}, cri.EnvVar{Name: at + "_ADDR", Value: ip})
	}
	return out
}

func variable(name string) string { return strings.ToUpper(strings.ReplaceAll(name, "-", "_")) }
