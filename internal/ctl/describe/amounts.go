package describe

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// resources writes amounts under a name; nothing if there are none.
func (s *sheet) resources(name string, list corev1.ResourceList) {
	amounts := map[string]string{}
	for k, q := range list {
		amounts[string(k)] = amount(q)
	}
	if len(amounts) > 0 {
		s.pairs(name, amounts)
	}
}

func amount(q resource.Quantity) string { return q.String() }
