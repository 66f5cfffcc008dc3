package containerd

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"minik8s/internal/kubelet/containerd/container"
	"minik8s/internal/kubelet/containerd/image"
	"minik8s/internal/kubelet/containerd/spec"
	"minik8s/internal/kubelet/cri"
)

// CreateContainer implements cri.Runtime. A command that cannot be executed is found out here by runc,
// but reported by StartContainer, where the caller expects it.
func (r *Runtime) CreateContainer(ctx context.Context, cfg cri.ContainerConfig) (string, error) {
	ctx = r.ns(ctx)
	defer r.sandboxes.Busy()()
	rec := r.records.get(cfg.PodUID)
	if rec == nil || !r.whole(rec) {
		return "", fmt.Errorf("containerd: pod %s/%s has no sandbox", cfg.PodNamespace, cfg.PodName)
	}
	for _, c := range r.containers.OfPod(cfg.PodUID) {
		if c.Meta.Name == cfg.Name && c.Meta.Attempt == cfg.Attempt {
			return c.Meta.ID, nil
		}
	}
	img, err := r.images.Get(ctx, cfg.Image)
	if err != nil {
		return "", err
	}
	if img == nil {
		return "", fmt.Errorf("containerd: image %q: %w", cfg.Image, cri.ErrImageNotFound)
	}
	c, err := r.create(ctx, rec, cfg, img)
	if c != nil && c.StartError() == "" {
		return c.Meta.ID, nil
	}
	if ctx.Err() == nil && r.images.Repair(ctx, cfg.Image) {
		// The image was damaged and has been repaired.
		if c != nil {
			if err := c.Remove(ctx); err != nil {
				return "", err
			}
		}
		c, err = r.create(ctx, rec, cfg, img)
	}
	if err != nil {
		return "", err
	}
	return c.Meta.ID, nil
}

// create makes a container completely, or not at all.
func (r *Runtime) create(ctx context.Context, rec *record, cfg cri.ContainerConfig, img *image.Image) (*container.Container, error) {
	var joins *os.File // another container's process namespace, open while this one is made
	defer func() { joins.Close() }()
	return r.containers.Create(ctx, container.Ingredients{
		Meta: container.Meta{
			PodUID: cfg.PodUID, PodNamespace: cfg.PodNamespace, PodName: cfg.PodName, Name: cfg.Name, Attempt: cfg.Attempt,
			SandboxID: rec.Sandbox.ID, Image: cfg.Image, ImageID: img.ID, LogPath: cfg.LogPath,
			StopSignal: cmp.Or(cfg.StopSignal, img.Config.StopSignal), TTY: cfg.TTY, StdinOnce: cfg.StdinOnce && !cfg.TTY,
			OwnPIDs: !rec.Config.HostPID && !rec.Config.ShareProcessNamespace && cfg.TargetID == "",
			Labels:  maps.Clone(cfg.Labels),
		},
		CgroupParent: cmp.Or(cfg.CgroupParent, rec.Config.CgroupParent, filepath.Join(r.cfg.CgroupRoot, cfg.PodUID)),
		ChainID:      img.ChainID,
		Stdin:        cfg.Stdin,
		Spec: func(ctx context.Context, m container.Meta) (*specs.Spec, error) {
			who, err := r.lookupUser(ctx, img, cfg.Security)
			if err != nil {
				return nil, err
			}
			from, err := r.pidsOf(rec)
			if err != nil {
				return nil, err
			}
			if cfg.TargetID != "" {
				if from = r.containers.Get(cfg.TargetID); from == nil || from.Meta.PodUID != cfg.PodUID {
					return nil, fmt.Errorf("containerd: the pod has no container %s whose processes could be shared", cfg.TargetID)
				}
			}
			pidPath := ""
			if from != nil {
				if joins, err = from.OpenPIDNamespace(); err != nil {
					return nil, err
				}
				pidPath = fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), joins.Fd())
			}
			oci, err := spec.Build(spec.Input{
				Container: cfg, Sandbox: rec.Config, Image: img.Config, User: who, Cgroup: m.Cgroup,
				SandboxDir: r.sandboxes.Dir(rec.Sandbox.ID), EtcDir: r.scratchDir(rec), PIDPath: pidPath, Host: spec.ThisHost(),
			})
			if err != nil {
				return nil, fmt.Errorf("containerd: %w", err)
			}
			return oci, nil
		},
	})
}

// lookupUser decides the user of the container's process, by the image's files.
func (r *Runtime) lookupUser(ctx context.Context, img *image.Image, s cri.Security) (spec.User, error) {
	passwd, err := r.images.File(ctx, img, "etc/passwd")
	if err != nil {
		return spec.User{}, err
	}
	group, err := r.images.File(ctx, img, "etc/group")
	if err != nil {
		return spec.User{}, err
	}
	u, err := spec.LookupUser(img.Config.User, s, passwd, group)
	if err != nil {
		return spec.User{}, fmt.Errorf("containerd: user: %w", err)
	}
	return u, nil
}
