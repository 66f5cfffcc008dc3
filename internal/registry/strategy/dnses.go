package strategy

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/api/dialect"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/api/validation"
	"minik8s/internal/registry"
)

// hostGroup is the group of writes that take a host name; see registry.Strategy.Exclusive.
const hostGroup = "hosts"

// hostHeld names the host name of a DNS object, for Strategy.Holds.
func hostHeld(host string) string { return "host/" + host }

// dnsStrategy: a DNS object gets its address as Services do, and has its host name to itself in the whole cluster, because
// a name resolves alike in every namespace. Services that it names need not exist.
func dnsStrategy(set Settings) *registry.Strategy {
	give := naming{addresses{set.ServiceRange, set.PodRange}}
	return &registry.Strategy{
		PrepareUpdate: onStep(func(d, old *minik8s.DNS) {
			if d.Spec.ServiceAddress == "" {
				d.Spec.ServiceAddress = old.Spec.ServiceAddress
			}
		}),
		Validate:       checkOne(validation.DNS),
		ValidateStatus: checkStep(validation.DNSStatusUpdate),
		Warnings: func(obj api.Object, others registry.Lister) []string {
			return missing(obj.(*minik8s.DNS), others)
		},
		CopyStatus:  onStep(func(dst, src *minik8s.DNS) { dst.Status = src.Status }),
		SpecChanged: specChanged(func(d *minik8s.DNS) any { return d.Spec }),
		Holds: func(obj api.Object) []string {
			d := obj.(*minik8s.DNS)
			out := []string{hostHeld(d.Spec.Host)}
			if a, err := netip.ParseAddr(d.Spec.ServiceAddress); err == nil {
				out = append(out, addressName(a.String()))
			}
			return out
		},
		Exclusive:   give.exclusive,
		Admit:       func(obj api.Object, others registry.Lister) error { return give.admit(obj, nil, others) },
		AdmitUpdate: give.admit,
		Dialect:     dialect.For(api.DNSes),
	}
}

// naming gives DNS objects what they need to themselves.
type naming struct{ addresses addresses }

// takes reports whether a write takes a name or an address that the object does not have yet.
func (naming) takes(obj, old api.Object) (host, address bool) {
	d, was := obj.(*minik8s.DNS), &minik8s.DNS{}
	if old != nil {
		was = old.(*minik8s.DNS)
	}
	s := &d.Spec
	return s.Host != was.Spec.Host, s.ServiceAddress == "" || s.ServiceAddress != was.Spec.ServiceAddress
}

func (n naming) exclusive(obj, old api.Object) []string {
	var groups []string
	host, address := n.takes(obj, old)
	if address {
		groups = append(groups, addressGroup)
	}
	if host {
		groups = append(groups, hostGroup)
	}
	return groups
}

func (n naming) admit(obj, old api.Object, others registry.Lister) error {
	d := obj.(*minik8s.DNS)
	var errs field.ErrorList
	host, address := n.takes(obj, old)
	if host {
		if holder := others.Holder(api.DNSes, hostHeld(d.Spec.Host)); holder != nil && !sameObject(holder, d) {
			errs = append(errs, field.Invalid(field.NewPath("spec", "host"), d.Spec.Host,
				titleOf(holder)+" has this name: choose another, or add the paths there"))
		}
	}
	if address {
		path := field.NewPath("spec", "serviceAddress")
		given, err := n.addresses.give(d, d.Spec.ServiceAddress, others)
		if err != nil {
			errs = append(errs, field.Invalid(path, d.Spec.ServiceAddress, err.Error()))
		}
		d.Spec.ServiceAddress = given
	}
	return registry.Invalid(api.DNSes, d.Name, errs)
}

// missing says which Services, and which ports of them, a DNS object names that do not exist.
func missing(d *minik8s.DNS, others registry.Lister) []string {
	var out []string
	for i := range d.Spec.Paths {
		target, err := d.Spec.Paths[i].Target()
		if err != nil || target.Service == "" {
			continue
		}
		path := field.NewPath("spec", "paths").Index(i)
		svc, ok := others.Get(api.Services, d.Namespace, target.Service).(*corev1.Service)
		switch {
		case !ok:
			out = append(out, fmt.Sprintf("%s: there is no service %s/%s yet: until there is, the gateway says so under this path", path, d.Namespace, target.Service))
		case !slices.ContainsFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool {
			return p.Port == target.Port && p.Protocol == corev1.ProtocolTCP
		}):
			out = append(out, fmt.Sprintf("%s: service %s/%s has no TCP port %d: until it has, the gateway says so under this path", path, d.Namespace, target.Service, target.Port))
		}
	}
	return out
}
