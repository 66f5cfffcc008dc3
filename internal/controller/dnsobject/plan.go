package dnsobject

import (
	"fmt"
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

// world is what there is in the namespace of an object.
type world interface {
	service(name string) *corev1.Service // nil if there is none
	slices(service string) []*discoveryv1.EndpointSlice
}

// decide is the condition that an object is to have, without its time.
func decide(d *minik8s.DNS, w world) metav1.Condition {
	worst := backends.Nothing
	var paths, missing []string
	for i := range d.Spec.Paths {
		p := &d.Spec.Paths[i]
		paths = append(paths, p.Path)
		target, err := p.Target()
		if err != nil || target.Service == "" {
			continue
		}
		port := backends.Port{Service: backends.Name{Namespace: d.Namespace, Name: target.Service}, Port: strconv.Itoa(int(target.Port))}
		lack, why := backends.Missing(port, w.service(target.Service), w.slices(target.Service))
		if lack == backends.Nothing {
			continue
		}
		if worst == backends.Nothing || lack < worst {
			worst = lack
		}
		missing = append(missing, p.Path+": "+strings.TrimSuffix(why, "."))
	}
	c := metav1.Condition{Type: readyType, Status: metav1.ConditionTrue, Reason: reasons[worst], ObservedGeneration: d.Generation,
		Message: "all that the paths lead to is there: " + some(paths, ", ")}
	if worst != backends.Nothing {
		c.Status, c.Message = metav1.ConditionFalse, some(missing, "; ")
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
