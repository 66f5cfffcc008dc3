package dnsobject

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/gateway/backends"
)

// readyType is the condition.
const readyType = "Ready"

// allFound is the reason when nothing is missing.
const allFound = "AllServicesFound"

var reasons = map[backends.Lack]string{backends.Nothing: allFound, backends.NoService: "ServiceNotFound", backends.NoPort: "PortNotFound", backends.NoEndpoints: "NoEndpoints"}

// named is how many paths a message names.
const named = 20

// world is what there is of Services.
type world interface {
	service(namespace, name string) *corev1.Service // nil if there is none
	slices(namespace, service string) []*discoveryv1.EndpointSlice
	// at is the Service that has an address; nil if there is none.
	at(netip.Addr) *corev1.Service
	// ranged reports whether an address is one that Services get, so that nothing else has it.
	ranged(netip.Addr) bool
}

// missing is what a path lacks, and why. An address that is no Service's may be anything outside: nothing is known of it.
func missing(d *minik8s.DNS, target minik8s.DNSTarget, w world) (backends.Lack, string) {
	namespace, name := d.Namespace, target.Service
	svc := w.service(namespace, name)
	if name == "" {
		if svc = w.at(target.Addr); svc == nil {
			if w.ranged(target.Addr) {
				return backends.NoService, fmt.Sprintf("no Service has the address %s.", target.Addr)
			}
			return backends.Nothing, ""
		}
		namespace, name = svc.Namespace, svc.Name
	}
	port := backends.Port{Service: backends.Name{Namespace: namespace, Name: name}, Port: strconv.Itoa(int(target.Port))}
	return backends.Missing(port, svc, w.slices(namespace, name))
}

// decide is the condition that an object is to have, without its time.
func decide(d *minik8s.DNS, w world) metav1.Condition {
	worst := backends.Nothing
	var paths, lacking []string
	for i := range d.Spec.Paths {
		p := &d.Spec.Paths[i]
		paths = append(paths, p.Path)
		target, err := p.Target()
		if err != nil {
			continue
		}
		lack, why := missing(d, target, w)
		if lack == backends.Nothing {
			continue
		}
		if worst == backends.Nothing || lack < worst {
			worst = lack
		}
		lacking = append(lacking, p.Path+": "+strings.TrimSuffix(why, "."))
	}
	c := metav1.Condition{Type: readyType, Status: metav1.ConditionTrue, Reason: reasons[worst], ObservedGeneration: d.Generation,
		Message: "all that the paths lead to is there: " + some(paths, ", ")}
	if worst != backends.Nothing {
		c.Status, c.Message = metav1.ConditionFalse, some(lacking, "; ")
	}
	return c
}

// some joins the first of many.
func some(list []string, between string) string {
	if len(list) > named {
		return strings.Join(list[:named], between) + fmt.Sprintf("%sand %d more", between, len(list)-named)
	}
	return strings.Join(list, between)
}
