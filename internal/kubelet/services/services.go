package services

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/disk"
	"minik8s/internal/informer"
	"minik8s/internal/kubelet/cri"
)

// patience is how long the start of a container waits for the first list of Services; then it is tried again later.
const patience = 5 * time.Second

// The files in a pod's directory.
const (
	variablesFile   = "services.json"
	nameserversFile = "nameservers.json"
)

// Follower knows the cluster's Services.
type Follower struct {
	services *informer.Informer[*corev1.Service]
	synced   chan struct{}
	podDir   func(uid string) string
	patience time.Duration
	log      *slog.Logger
}

// New makes a Follower. views may be nil. podDir is the directory of a pod, for what its containers had last; nil: that is
// not kept.
func New(c client.Interface, views *informer.Views, podDir func(uid string) string, log *slog.Logger) *Follower {
	return &Follower{services: informer.New[*corev1.Service](c, api.Services, informer.Options{Views: views, Log: log}),
		synced: make(chan struct{}), podDir: podDir, patience: patience, log: log}
}

// Run follows the Services until ctx ends. It may be called once.
func (f *Follower) Run(ctx context.Context) {
	if err := f.services.Run(ctx, func() { close(f.synced) }); err != nil {
		f.log.Error("the Services are not followed any more", "error", err)
	}
}

// Variables returns the variables of Services for a pod's containers. The error says that the Services could not be read
// yet.
func (f *Follower) Variables(ctx context.Context, pod *corev1.Pod) ([]cri.EnvVar, error) {
	return known(ctx, f, pod, variablesFile, func() []cri.EnvVar {
		links := pod.Spec.EnableServiceLinks == nil || *pod.Spec.EnableServiceLinks
		out := []cri.EnvVar{}
		for _, svc := range seen(f.services.List(), pod.Namespace, links) {
			out = append(out, variables(svc)...)
		}
		return out
	})
}

// Nameservers returns the addresses of the cluster's DNS for a pod: none if it has none. The error says that the Services
// could not be read yet.
func (f *Follower) Nameservers(ctx context.Context, pod *corev1.Pod) ([]string, error) {
	return known(ctx, f, pod, nameserversFile, func() []string {
		svc, ok := f.services.Get(metav1.NamespaceSystem, api.DNSService)
		if !ok || !api.HasClusterIP(svc) || svc.Spec.ClusterIP == "" {
			return []string{}
		}
		return []string{svc.Spec.ClusterIP}
	})
}

// known is what now returns, once all Services are known. Until then it is what the pod had last, and for a pod that had
// nothing yet an error, after some patience.
func known[T any](ctx context.Context, f *Follower, pod *corev1.Pod, file string, now func() []T) ([]T, error) {
	select {
	case <-f.synced:
		return keep(f, pod, file, now()), nil
	default:
	}
	if last, ok := kept[T](f, pod, file); ok {
		return last, nil
	}
	select {
	case <-f.synced:
		return keep(f, pod, file, now()), nil
	case <-time.After(f.patience):
		return nil, errors.New("services have not yet been read at least once")
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the list of services: %w", ctx.Err())
	}
}

func (f *Follower) path(pod *corev1.Pod, file string) string {
	return filepath.Join(f.podDir(string(pod.UID)), file)
}

// kept is what the pod had last.
func kept[T any](f *Follower, pod *corev1.Pod, file string) (out []T, ok bool) {
	if f.podDir == nil {
		return nil, false
	}
	data, err := os.ReadFile(f.path(pod, file))
	if err != nil || json.Unmarshal(data, &out) != nil {
		return nil, false
	}
	return out, true
}

// keep notes what the pod has now, and returns it. A file that is lost or torn only makes a pod wait for the API.
func keep[T any](f *Follower, pod *corev1.Pod, file string, now []T) []T {
	if f.podDir == nil {
		return now
	}
	data, err := json.Marshal(now)
	if err != nil {
		return now // strings always can be
	}
	path := f.path(pod, file)
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, data) {
		return now
	}
	err = disk.Private(filepath.Dir(path), 0o750)
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		f.log.Warn("what is known of Services is not kept for a start without the API", "pod", pod.Namespace+"/"+pod.Name, "error", err)
	}
	return now
}
