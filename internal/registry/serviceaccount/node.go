package serviceaccount

import (
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
)

// restrictNode says why a kubelet may not have a token that it asks for like this; empty: it may. As Kubernetes' admission
// plugin NodeRestriction: the token is bound to a pod on the kubelet's node, to that very pod, and for the one audience of
// a volume of the pod. So with the key of a node nobody gets a token for a service that no pod of the node talks to. pod is
// the one that is asked for; nil if there is none.
func restrictNode(node string, pod *corev1.Pod, spec *authenticationv1.TokenRequestSpec) string {
	ref := spec.BoundObjectRef
	switch {
	case ref == nil || ref.APIVersion != "v1" || ref.Kind != "Pod" || ref.Name == "":
		return "node requested token not bound to a pod"
	case ref.UID == "":
		return "node requested token with a pod binding without a uid"
	case pod == nil || pod.Spec.NodeName != node:
		return "node requested token bound to a pod scheduled on a different node"
	case ref.UID != pod.UID:
		return "the UID in the bound object reference (" + string(ref.UID) + ") does not match the UID in record. The object might have been deleted and then recreated"
	case len(spec.Audiences) > 1:
		return "node may only request 0 or 1 audiences"
	}
	audience := ""
	if len(spec.Audiences) == 1 {
		audience = spec.Audiences[0]
	}
	if !hasTokenFor(pod, audience) {
		return "no serviceAccountToken volume of the pod has the audience \"" + audience + "\""
	}
	return ""
}

// hasTokenFor reports whether a volume of a pod holds a token for an audience; empty: for the API server.
func hasTokenFor(pod *corev1.Pod, audience string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool {
			return s.ServiceAccountToken != nil && s.ServiceAccountToken.Audience == audience
		})
	})
}
