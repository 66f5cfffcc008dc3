package podconfig

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/cri"
)

// Files are the paths of the container's log and its termination message.
type Files struct{ Log, TerminationMessage string }

// Container is the configuration of one attempt of a container except for TargetID. It makes the file of the
// termination message and the directory of the log.
func (b *Builder) Container(ctx context.Context, pod *corev1.Pod, c *corev1.Container, attempt int, sandbox *cri.Sandbox, files Files) (cri.ContainerConfig, error) {
	env, err := b.environment(ctx, pod, c, sandbox)
	if err != nil {
		return cri.ContainerConfig{}, err
	}
	security := securityOf(pod, c)
	if err := b.verifyNonRoot(ctx, pod, c, security); err != nil {
		return cri.ContainerConfig{}, err
	}
	values := make(map[string]string, len(env))
	for _, e := range env {
		values[e.Name] = e.Value
	}
	mounts, err := b.mountsOf(pod, c, files.TerminationMessage, values)
	if err != nil {
		return cri.ContainerConfig{}, err
	}
	if err := os.MkdirAll(filepath.Dir(files.Log), 0o750); err != nil {
		return cri.ContainerConfig{}, fmt.Errorf("log directory: %w", err)
	}
	cfg := cri.ContainerConfig{
		PodUID: string(pod.UID), PodNamespace: pod.Namespace, PodName: pod.Name,
		Name: c.Name, Attempt: attempt, Image: c.Image,
		Command: expandAll(c.Command, values), Args: expandAll(c.Args, values),
		Env: env, WorkingDir: c.WorkingDir, Mounts: mounts, LogPath: files.Log,
		Stdin: c.Stdin, StdinOnce: c.StdinOnce, TTY: c.TTY,
		Resources:   containerResources(c),
		OOMScoreAdj: oomScoreAdj(pod, c, b.Memory()),
		Security:    security,
		Labels: map[string]string{
			"io.kubernetes.pod.namespace": pod.Namespace, "io.kubernetes.pod.name": pod.Name,
			"io.kubernetes.pod.uid": string(pod.UID), "io.kubernetes.container.name": c.Name,
		},
	}
	if l := c.Lifecycle; l != nil && l.StopSignal != nil {
		cfg.StopSignal = string(*l.StopSignal)
	}
	return cfg, nil
}

// mountsOf are the container's volumes and the file for its termination message.
func (b *Builder) mountsOf(pod *corev1.Pod, c *corev1.Container, file string, env map[string]string) ([]cri.Mount, error) {
	expanded := func(s string) (string, error) { return expandKnown(s, env) }
	mounts, err := b.Volumes.Mounts(pod, c, expanded)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return nil, fmt.Errorf("termination log: %w", err)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o666)
	if err != nil {
		return nil, fmt.Errorf("termination log: %w", err)
	}
	defer f.Close()
	if err := f.Chmod(0o666); err != nil { // any user of the container writes to it
		return nil, fmt.Errorf("termination log: %w", err)
	}
	path := c.TerminationMessagePath
	if path == "" {
		path = corev1.TerminationMessagePathDefault
	}
	return append(mounts, cri.Mount{HostPath: file, ContainerPath: path}), nil
}

func expandAll(list []string, values map[string]string) []string {
	var out []string
	for _, s := range list {
		out = append(out, expand(s, values))
	}
	return out
}
