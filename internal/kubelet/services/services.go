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

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/informer"
	"minik8s/internal/kubelet/cri"
)

// patience is how long the start of a container waits for the first list of Services; then it is tried again later.
const patience = 5 * time.Second

// fileName is the file in a pod's directory.
const fileName = "services.json"

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
	select {
	case <-f.synced:
		return f.now(pod), nil
	default:
	}
	if kept, ok := f.kept(pod); ok {
		return kept, nil
	}
	select {
	case <-f.synced:
		return f.now(pod), nil
	case <-time.After(f.patience):
		return nil, errors.New("services have not yet been read at least once, cannot construct envvars")
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the list of services: %w", ctx.Err())
	}
}

func (f *Follower) now(pod *corev1.Pod) []cri.EnvVar {
	links := pod.Spec.EnableServiceLinks == nil || *pod.Spec.EnableServiceLinks
	out := []cri.EnvVar{}
	for _, svc := range seen(f.services.List(), pod.Namespace, links) {
		out = append(out, variables(svc)...)
	}
	f.keep(pod, out)
	return out
}

func (f *Follower) path(pod *corev1.Pod) string {
	return filepath.Join(f.podDir(string(pod.UID)), fileName)
}

// kept is what the pod's containers had last.
func (f *Follower) kept(pod *corev1.Pod) (out []cri.EnvVar, ok bool) {
	if f.podDir == nil {
		return nil, false
	}
	data, err := os.ReadFile(f.path(pod))
	if err != nil || json.Unmarshal(data, &out) != nil {
		return nil, false
	}
	return out, true
}

// keep notes what the pod's containers have now. A file that is lost or torn only makes a container wait for the API.
func (f *Follower) keep(pod *corev1.Pod, vars []cri.EnvVar) {
	if f.podDir == nil {
		return
	}
	data, err := json.Marshal(vars)
	if err != nil {
		return // strings always can be
	}
	path := f.path(pod)
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, data) {
		return
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		f.log.Warn("the variables of Services are not kept for a start without the API", "pod", pod.Namespace+"/"+pod.Name, "error", err)
	}
}
