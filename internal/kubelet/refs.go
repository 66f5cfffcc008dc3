package kubelet

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/objects"
	"minik8s/internal/kubelet/podconfig"
	"minik8s/internal/kubelet/token"
)

// referencesOf lists the ConfigMaps and Secrets that a pod's containers and volumes are made from, each
// once. It is pure.
func referencesOf(pod *corev1.Pod) []objects.Ref {
	var out []objects.Ref
	add := func(kind *api.Kind, name string) {
		ref := objects.Ref{Kind: kind, Namespace: pod.Namespace, Name: name}
		for _, have := range out {
			if have == ref {
				return
			}
		}
		out = append(out, ref)
	}
	for _, c := range podspec.AllContainers(pod) {
		envReferences(c, add)
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.ConfigMap != nil {
			add(api.ConfigMaps, v.ConfigMap.Name)
		}
		if v.Secret != nil {
			add(api.Secrets, v.Secret.SecretName)
		}
		if v.Projected == nil {
			continue
		}
		for _, s := range v.Projected.Sources {
			if s.ConfigMap != nil {
				add(api.ConfigMaps, s.ConfigMap.Name)
			}
			if s.Secret != nil {
				add(api.Secrets, s.Secret.Name)
			}
		}
	}
	return out
}

func envReferences(c *corev1.Container, add func(*api.Kind, string)) {
	for _, e := range c.EnvFrom {
		if e.ConfigMapRef != nil {
			add(api.ConfigMaps, e.ConfigMapRef.Name)
		}
		if e.SecretRef != nil {
			add(api.Secrets, e.SecretRef.Name)
		}
	}
	for _, e := range c.Env {
		if from := e.ValueFrom; from != nil && from.ConfigMapKeyRef != nil {
			add(api.ConfigMaps, from.ConfigMapKeyRef.Name)
		} else if from != nil && from.SecretKeyRef != nil {
			add(api.Secrets, from.SecretKeyRef.Name)
		}
	}
}

// sources implements volume.Source: it has the content of volumes.
type sources struct {
	*podconfig.Builder
	tokens *token.Manager
}

// Token implements volume.Source.
func (s sources) Token(ctx context.Context, pod *corev1.Pod, ask *corev1.ServiceAccountTokenProjection) (string, error) {
	return s.tokens.Get(ctx, pod, ask)
}
