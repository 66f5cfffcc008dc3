package strategy

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/api/defaults"
	"minik8s/internal/api/validation"
	"minik8s/internal/registry"
)

// ingressStrategy: a new Ingress that names no class gets the default one. Unlike DNS objects, several may have one host.
func ingressStrategy(set Settings) *registry.Strategy {
	return &registry.Strategy{
		ValidateCreate: func(obj api.Object) field.ErrorList {
			in := obj.(*networkingv1.Ingress)
			return append(validation.Ingress(in), validation.IngressCreate(in)...)
		},
		ValidateUpdate: checkStep(validation.IngressUpdate),
		ValidateStatus: checkStep(validation.IngressStatusUpdate),
		Warnings: func(obj api.Object, others registry.Lister) []string {
			return append(validation.IngressWarnings(obj.(*networkingv1.Ingress)), overshadowed(set, others)...)
		},
		CopyStatus:  onStep(func(dst, src *networkingv1.Ingress) { dst.Status = src.Status }),
		SpecChanged: specChanged(func(in *networkingv1.Ingress) any { return in.Spec }),
		Admit:       admitIngress,
	}
}

// overshadowed are the warnings about load balancers that have the ports at which the machines answer for Ingresses.
func overshadowed(set Settings, others registry.Lister) (out []string) {
	if len(set.LBPool) > 0 {
		return nil
	}
	for _, obj := range others.List(api.Services) {
		svc := obj.(*corev1.Service)
		if !api.Balanced(svc) {
			continue
		}
		for _, m := range set.MachinePorts {
			if m.While == api.Ingresses && slices.ContainsFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool { return int(p.Port) == m.Port && p.Protocol == m.Protocol }) {
				out = append(out, fmt.Sprintf("the load balancer %s/%s has port %d of the machines' addresses, so no Ingress is answered for there: give it another port, or the cluster addresses of its own for them (--lb-pool)",
					svc.Namespace, svc.Name, m.Port))
			}
		}
	}
	return out
}

func ingressClassStrategy() *registry.Strategy {
	return &registry.Strategy{
		Default:        onOne(defaults.IngressClass),
		Validate:       checkOne(validation.IngressClass),
		ValidateUpdate: checkStep(validation.IngressClassUpdate),
		SpecChanged:    specChanged(func(c *networkingv1.IngressClass) any { return c.Spec }),
	}
}

func networkPolicyStrategy() *registry.Strategy {
	return &registry.Strategy{
		Default:        onOne(defaults.NetworkPolicy),
		ValidateCreate: checkOne(validation.NetworkPolicy),
		ValidateUpdate: checkStep(validation.NetworkPolicyUpdate),
		Warnings:       warnings(validation.NetworkPolicyWarnings),
		SpecChanged:    specChanged(func(p *networkingv1.NetworkPolicy) any { return p.Spec }),
	}
}

// serviceCIDRStrategy: a ServiceCIDR is another range from which Services get their addresses. It stays until none of them is
// in use, by its finalizer; that of the masters' setting stays.
func serviceCIDRStrategy(set Settings) *registry.Strategy {
	return &registry.Strategy{
		PrepareCreate: func(obj api.Object) {
			if f := obj.GetFinalizers(); !slices.Contains(f, api.ServiceCIDRFinalizer) {
				obj.SetFinalizers(append(slices.Clone(f), api.ServiceCIDRFinalizer))
			}
		},
		Validate:       checkOne(validation.ServiceCIDR),
		ValidateUpdate: checkStep(validation.ServiceCIDRUpdate),
		ValidateStatus: checkStep(validation.ServiceCIDRStatusUpdate),
		CopyStatus:     onStep(func(dst, src *networkingv1.ServiceCIDR) { dst.Status = src.Status }),
		Exclusive: func(_, old api.Object) []string { // no Node gets a range of it meanwhile
			if old == nil {
				return []string{addressGroup}
			}
			return nil
		},
		Admit: func(obj api.Object, others registry.Lister) error {
			cidr := obj.(*networkingv1.ServiceCIDR)
			return registry.Invalid(api.ServiceCIDRs, cidr.Name, amongPods(cidr, set.PodRange, others))
		},
		MayDelete: func(obj api.Object) error {
			if obj.GetName() == api.DefaultServiceCIDR {
				return errors.New("it is the range that the masters have by --service-cidr")
			}
			return nil
		},
	}
}

// amongPods names the ranges in which pods have their addresses.
func amongPods(cidr *networkingv1.ServiceCIDR, pods netip.Prefix, others registry.Lister) (errs field.ErrorList) {
	for i, r := range api.ServiceRanges(cidr) {
		path := field.NewPath("spec", "cidrs").Index(i)
		if pods.IsValid() && pods.Overlaps(r) {
			errs = append(errs, field.Invalid(path, r.String(), fmt.Sprintf("it overlaps the range of pods' addresses, --cluster-cidr %s: choose another", pods)))
			continue
		}
		for _, obj := range others.List(api.Nodes) {
			for _, text := range obj.(*corev1.Node).Spec.PodCIDRs {
				if p, err := netip.ParsePrefix(text); err == nil && p.Overlaps(r) {
					errs = append(errs, field.Invalid(path, r.String(), fmt.Sprintf("it overlaps %s, where the pods of node %s have their addresses: choose another", text, obj.GetName())))
				}
			}
		}
	}
	return errs
}

// ipAddressStrategy: Services and DNS objects imply their IPAddresses. One that is created keeps its address for something
// else, so that no Service gets it.
func ipAddressStrategy() *registry.Strategy {
	return &registry.Strategy{
		Validate:       checkOne(validation.IPAddress),
		ValidateUpdate: checkStep(validation.IPAddressUpdate),
		SpecChanged:    specChanged(func(a *networkingv1.IPAddress) any { return a.Spec }),
		Exclusive: func(_, old api.Object) []string {
			if old == nil {
				return []string{addressGroup}
			}
			return nil
		},
		Admit: func(obj api.Object, others registry.Lister) error {
			if addr, err := netip.ParseAddr(obj.GetName()); err == nil && holderOf(addr, others) != nil {
				return apierrors.NewAlreadyExists(api.IPAddresses.GR(), obj.GetName())
			}
			return nil
		},
	}
}

// admitIngress gives an Ingress the default class, if it names none in either of the two ways.
func admitIngress(obj api.Object, others registry.Lister) error {
	in := obj.(*networkingv1.Ingress)
	if _, noted := in.Annotations[api.IngressClassAnnotation]; noted || in.Spec.IngressClassName != nil {
		return nil
	}
	if class := defaultIngressClass(others); class != nil {
		in.Spec.IngressClassName = new(class.Name)
	}
	return nil
}

// defaultIngressClass is the class that is marked as the default; nil if there is none. Of several it is the newest, as in
// Kubernetes.
func defaultIngressClass(others registry.Lister) *networkingv1.IngressClass {
	var found *networkingv1.IngressClass
	for _, obj := range others.List(api.IngressClasses) {
		c := obj.(*networkingv1.IngressClass)
		if !api.IsDefaultIngressClass(c) {
			continue
		}
		if found == nil || found.CreationTimestamp.Before(&c.CreationTimestamp) ||
			found.CreationTimestamp.Equal(&c.CreationTimestamp) && c.Name < found.Name {
			found = c
		}
	}
	return found
}
