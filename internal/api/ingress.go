package api

import networkingv1 "k8s.io/api/networking/v1"

// IngressClassAnnotation on an Ingress names its class in the way from before there was spec.ingressClassName.
const IngressClassAnnotation = "kubernetes.io/ingress.class"

// IsDefaultIngressClass reports whether Ingresses that name no class get this one.
func IsDefaultIngressClass(c *networkingv1.IngressClass) bool {
	return c.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true"
}
