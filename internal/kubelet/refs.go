package kubelet

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/objects"
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

// sources is the kubelet as volumes see it: volume.Source.
type sources struct{ k *Kubelet }

// ConfigMap implements volume.Source.
func (s sources) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	obj, err := s.k.objects.Get(ctx, objects.Ref{Kind: api.ConfigMaps, Namespace: namespace, Name: name})
	if err != nil {
		return nil, err
	}
	return obj.(*corev1.ConfigMap), nil
}

// Secret implements volume.Source.
func (s sources) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	obj, err := s.k.objects.Get(ctx, objects.Ref{Kind: api.Secrets, Namespace: namespace, Name: name})
	if err != nil {
		return nil, err
	}
	return obj.(*corev1.Secret), nil
}

// Token implements volume.Source.
func (s sources) Token(ctx context.Context, pod *corev1.Pod, ask *corev1.ServiceAccountTokenProjection) (string, error) {
	return s.k.tokens.get(ctx, pod, ask)
}

// Field implements volume.Source.
func (s sources) Field(pod *corev1.Pod, path string) (string, error) {
	return s.k.fieldOf(pod, path, nil)
}

// Resource implements volume.Source.
func (s sources) Resource(pod *corev1.Pod, r *corev1.ResourceFieldSelector) (string, error) {
	c := podspec.Container(pod, r.ContainerName)
	if c == nil {
		return "", fmt.Errorf("the pod has no container %s", r.ContainerName)
	}
	return resourceOf(c, r, s.k.node.Allocatable())
}
