package containerd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"minik8s/internal/disk"
	"minik8s/internal/kubelet/containerd/container"
	"minik8s/internal/kubelet/containerd/spec"
)

// pauseName is the name of the container that holds a shared process namespace. It is hidden from the kubelet.
const pauseName = "_pause"

// startPause runs the pod's first process, whose pid namespace the containers join.
func (r *Runtime) startPause(ctx context.Context, rec *record) error {
	ctx = r.ns(ctx)
	if r.containerd.Programs.Pause == "" {
		return errors.New("containerd: shareProcessNamespace needs minik8s's own containerd")
	}
	root := filepath.Join(r.cfg.RunDir, "pause")
	for _, d := range []string{"proc", "dev", "sys"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			return fmt.Errorf("containerd: %w", err)
		}
	}
	data, err := os.ReadFile(r.containerd.Programs.Pause)
	if err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	if err := disk.Publish(filepath.Join(root, "pause"), data, 0o755); err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	c, err := r.containers.Create(ctx, container.Ingredients{
		Meta: container.Meta{
			PodUID: rec.Config.PodUID, PodNamespace: rec.Config.PodNamespace, PodName: rec.Config.PodName,
			Name: pauseName, SandboxID: rec.Sandbox.ID, OwnPIDs: true,
		},
		CgroupParent: cmp.Or(rec.Config.CgroupParent, filepath.Join(r.cfg.CgroupRoot, rec.Config.PodUID)),
		Spec: func(_ context.Context, m container.Meta) (*specs.Spec, error) {
			return spec.Pause(rec.Config, r.sandboxes.Dir(rec.Sandbox.ID), m.Cgroup, root), nil
		},
	})
	if err != nil {
		return err
	}
	if err := c.Start(ctx); err != nil {
		return fmt.Errorf("containerd: pause: %w", err)
	}
	return nil
}

// removePause ends the pause container, and with it all processes left in its pid namespace.
func (r *Runtime) removePause(ctx context.Context, rec *record) error {
	for _, c := range r.containers.OfPod(rec.Config.PodUID) {
		if c.Meta.Name == pauseName {
			if err := c.Remove(r.ns(ctx)); err != nil {
				return err
			}
		}
	}
	return nil
}

// pidsOf is the container whose process namespace a pod's containers share; nil if each has its own.
func (r *Runtime) pidsOf(rec *record) (*container.Container, error) {
	if !rec.Config.ShareProcessNamespace || rec.Config.HostPID {
		return nil, nil
	}
	for _, c := range r.containers.OfPod(rec.Config.PodUID) {
		if c.Meta.Name == pauseName {
			return c, nil
		}
	}
	return nil, fmt.Errorf("containerd: pod %s/%s has lost its shared pid namespace", rec.Config.PodNamespace, rec.Config.PodName)
}
