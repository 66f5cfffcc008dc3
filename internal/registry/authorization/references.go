package authorization

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
)

// refers reports whether a pod refers to a ConfigMap, Secret or ServiceAccount anywhere. As in Kubernetes, what a mirror
// pod names does not count: it comes from a file on the node.
func refers(p *corev1.Pod, kind *api.Kind, name string) bool {
	if _, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return false
	}
	if kind == api.ServiceAccounts {
		return p.Spec.ServiceAccountName == name
	}
	if kind == api.Secrets && slices.ContainsFunc(p.Spec.ImagePullSecrets, func(s corev1.LocalObjectReference) bool { return s.Name == name }) {
		return true
	}
	for _, v := range p.Spec.Volumes {
		if volumeRefers(v, kind, name) {
			return true
		}
	}
	for _, c := range append(slices.Clone(p.Spec.InitContainers), p.Spec.Containers...) {
		if containerRefers(c, kind, name) {
			return true
		}
	}
	return slices.ContainsFunc(p.Spec.EphemeralContainers, func(e corev1.EphemeralContainer) bool {
		return containerRefers(corev1.Container(e.EphemeralContainerCommon), kind, name)
	})
}

func volumeRefers(v corev1.Volume, kind *api.Kind, name string) bool {
	if kind == api.Secrets && v.Secret != nil && v.Secret.SecretName == name ||
		kind == api.ConfigMaps && v.ConfigMap != nil && v.ConfigMap.Name == name {
		return true
	}
	if v.Projected == nil {
		return false
	}
	return slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool {
		return kind == api.Secrets && s.Secret != nil && s.Secret.Name == name ||
			kind == api.ConfigMaps && s.ConfigMap != nil && s.ConfigMap.Name == name
	})
}

func containerRefers(c corev1.Container, kind *api.Kind, name string) bool {
	return slices.ContainsFunc(c.EnvFrom, func(e corev1.EnvFromSource) bool {
		return kind == api.Secrets && e.SecretRef != nil && e.SecretRef.Name == name ||
			kind == api.ConfigMaps && e.ConfigMapRef != nil && e.ConfigMapRef.Name == name
	}) || slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
		if e.ValueFrom == nil {
			return false
		}
		return kind == api.Secrets && e.ValueFrom.SecretKeyRef != nil && e.ValueFrom.SecretKeyRef.Name == name ||
			kind == api.ConfigMaps && e.ValueFrom.ConfigMapKeyRef != nil && e.ValueFrom.ConfigMapKeyRef.Name == name
	})
}
