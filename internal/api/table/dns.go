package table

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/minik8s"
)

var dnsColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name must be unique within a namespace."},
	{Name: "Host", Type: "string", Description: "The host name."},
	{Name: "Address", Type: "string", Description: "The address to which the name resolves."},
	{Name: "Paths", Type: "string", Description: "The paths under the name."},
	{Name: "Age", Type: "string", Description: "The time since the object was created."},
	{Name: "Targets", Type: "string", Priority: 1, Description: "Where the paths lead, in their order."},
}

func dnsRow(d *minik8s.DNS, now time.Time) []any {
	var targets []string
	for i := range d.Spec.Paths {
		targets = append(targets, dnsTarget(&d.Spec.Paths[i]))
	}
	return []any{d.Name, d.Spec.Host, or(d.Spec.ServiceAddress, none), dnsPaths(d), since(d.CreationTimestamp.Time, now),
		or(strings.Join(targets, ","), none)}
}

func dnsPaths(d *minik8s.DNS) string {
	var paths []string
	for i := range d.Spec.Paths {
		paths = append(paths, d.Spec.Paths[i].Path)
	}
	return or(strings.Join(paths, ","), none)
}

func dnsTarget(p *minik8s.DNSPath) string {
	t, err := p.Target()
	if err != nil {
		return p.Address
	}
	return t.String()
}

// The columns of the two seed systems.
var dnsColumnsExtended = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Namespace and name."},
	{Name: "UID", Type: "string", Description: "The UID of the object."},
	{Name: "Host", Type: "string", Description: "The host name."},
	{Name: "Paths", Type: "string", Description: "The paths under the name."},
}

func dnsRowExtended(d *minik8s.DNS, _ time.Time) []any {
	return []any{d.Namespace + "/" + d.Name, string(d.UID), d.Spec.Host, dnsPaths(d)}
}

var dnsColumnsCompact = []metav1.TableColumnDefinition{
	{Name: "NAME", Type: "string", Format: "name", Description: "Name must be unique within a namespace."},
	{Name: "UID", Type: "string", Description: "The UID of the object."},
	{Name: "HOSTNAME", Type: "string", Description: "The host name."},
	{Name: "ADDRESS", Type: "string", Description: "The address to which the name resolves."},
}

func dnsRowCompact(d *minik8s.DNS, _ time.Time) []any {
	return []any{d.Name, string(d.UID), d.Spec.Host, or(d.Spec.ServiceAddress, none)}
}
