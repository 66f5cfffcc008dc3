package strategy

import (
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/api/defaults"
	"minik8s/internal/api/validation"
	"minik8s/internal/registry"
)

// ingressStrategy: a new Ingress that names no class gets the default one. Unlike DNS objects, several may have one host.
func ingressStrategy() *registry.Strategy {
	return &registry.Strategy{
		ValidateCreate: func(obj api.Object) field.ErrorList {
			in := obj.(*networkingv1.Ingress)
			return append(validation.Ingress(in), validation.IngressCreate(in)...)
		},
		ValidateUpdate: checkStep(validation.IngressUpdate),
		ValidateStatus: checkStep(validation.IngressStatusUpdate),
		Warnings:       warnings(validation.IngressWarnings),
		CopyStatus:     onStep(func(dst, src *networkingv1.Ingress) { dst.Status = src.Status }),
		SpecChanged:    specChanged(func(in *networkingv1.Ingress) any { return in.Spec }),
		Admit:          admitIngress,
	}
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
