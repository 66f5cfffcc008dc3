package podconfig

import (
	"context"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/events"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/objects"
	"minik8s/internal/kubelet/volume"
)

// Builder makes configurations for the pods of one node. All fields except ClusterDNS must be set, unless no pod's
// spec uses them.
type Builder struct {
	NodeName string
	NodeIP   netip.Addr
	// ClusterDNS are the servers of dnsPolicy ClusterFirst, ClusterDomain their domain; none: those that Services knows.
	ClusterDNS    []string
	ClusterDomain string
	// Objects has the ConfigMaps and Secrets that variables come from, and Volumes what is mounted.
	Objects *objects.Manager
	Volumes *volume.Manager
	// Services makes the variables of Services; nil: there are none.
	Services Services
	// Images has the user of an image.
	Images cri.Images
	Events *events.Recorder
	// Allocatable is what the node has for pods, and Memory all of its memory in bytes.
	Allocatable func() corev1.ResourceList
	Memory      func() int64
}

// Services knows how a pod's containers find Services: by variables, and by names.
type Services interface {
	Variables(ctx context.Context, pod *corev1.Pod) ([]cri.EnvVar, error)
	Nameservers(ctx context.Context, pod *corev1.Pod) ([]string, error)
}

// ConfigMap is the ConfigMap of that name; the error is *objects.Missing if there is none.
func (b *Builder) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	obj, err := b.Objects.Get(ctx, objects.Ref{Kind: api.ConfigMaps, Namespace: namespace, Name: name})
	if err != nil {
		return nil, err
	}
	return obj.(*corev1.ConfigMap), nil
}

// Secret is the Secret of that name; the error is *objects.Missing if there is none.
func (b *Builder) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	obj, err := b.Objects.Get(ctx, objects.Ref{Kind: api.Secrets, Namespace: namespace, Name: name})
	if err != nil {
		return nil, err
	}
	return obj.(*corev1.Secret), nil
}
