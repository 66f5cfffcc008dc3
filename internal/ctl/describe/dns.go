package describe

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/minik8s"
)

func writeDNS(out *sheet, d *minik8s.DNS) {
	out.field("UID", string(d.UID))
	out.field("Host", d.Spec.Host)
	out.field("Service Address", d.Spec.ServiceAddress)
	var paths []string
	for i := range d.Spec.Paths {
		p := &d.Spec.Paths[i]
		to := p.Address
		if t, err := p.Target(); err == nil && t.Service != "" {
			to = "service " + t.String()
		}
		paths = append(paths, fmt.Sprintf("%-24s -> %s", p.Path, to))
	}
	out.lines("Paths", paths)
	writeConditions(out, d.Status.Conditions)
}

func writeConditions(out *sheet, conditions []metav1.Condition) {
	if len(conditions) == 0 {
		return
	}
	out.line("Conditions:")
	for _, c := range conditions {
		out.line("  %-16s %-8s %-24s %s", c.Type, c.Status, c.Reason, c.Message)
	}
}
