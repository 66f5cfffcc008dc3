package containerd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/api/types"
	"github.com/containerd/containerd/containers"
	"github.com/containerd/containerd/snapshots"
	"github.com/containerd/typeurl/v2"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"google.golang.org/protobuf/types/known/anypb"

	"minik8s/internal/kubelet/containerd/embed"
	"minik8s/internal/kubelet/containerd/image"
	"minik8s/internal/kubelet/containerd/spec"
	"minik8s/internal/kubelet/containerd/stdio"
	"minik8s/internal/kubelet/cri"
)

func (r *Runtime) containerDir(id string) string {
	return filepath.Join(r.cfg.RunDir, "containers", id)
}

// CreateContainer implements cri.Runtime. A command that cannot be executed is found out here by runc,
// but reported by StartContainer, where the caller expects it.
func (r *Runtime) CreateContainer(ctx context.Context, cfg cri.ContainerConfig) (_ string, err error) {
	ctx = r.ns(ctx)
	defer r.sandboxes.Busy()()
	rec := r.record(cfg.PodUID)
	if rec == nil || !rec.Whole {
		return "", fmt.Errorf("containerd: pod %s/%s has no sandbox", cfg.PodNamespace, cfg.PodName)
	}
	for _, c := range r.containersOf(cfg.PodUID) {
		if c.meta.Name == cfg.Name && c.meta.Attempt == cfg.Attempt {
			return c.meta.ID, nil
		}
	}
	img, err := r.images.Get(ctx, cfg.Image)
	if err != nil {
		return "", err
	}
	if img == nil {
		return "", fmt.Errorf("containerd: image %q: %w", cfg.Image, cri.ErrImageNotFound)
	}
	m := meta{
		ID: newID(), PodUID: cfg.PodUID, PodNamespace: cfg.PodNamespace, PodName: cfg.PodName, Name: cfg.Name,
		Attempt: cfg.Attempt, SandboxID: rec.Sandbox.ID, Image: cfg.Image, ImageID: img.ID, LogPath: cfg.LogPath,
		StopSignal: cmp.Or(cfg.StopSignal, img.Config.StopSignal), TTY: cfg.TTY, StdinOnce: cfg.StdinOnce && !cfg.TTY,
		OwnPIDs:   !rec.Config.HostPID && !rec.Config.ShareProcessNamespace && cfg.TargetID == "",
		CreatedAt: time.Now(), Labels: maps.Clone(cfg.Labels),
	}
	m.Cgroup = filepath.Join(cmp.Or(cfg.CgroupParent, rec.Config.CgroupParent, filepath.Join(r.cfg.CgroupRoot, cfg.PodUID)), m.ID)
	c, err := r.createAs(ctx, m, rec, cfg, img)
	if c != nil && c.state.StartError == "" {
		return m.ID, nil
	}
	if ctx.Err() != nil || !r.images.Repair(ctx, cfg.Image) {
		return m.ID, err
	}
	// The image was damaged and has been repaired.
	if c != nil {
		if err := r.removeContainer(ctx, c); err != nil {
			return "", err
		}
	}
	m.Cgroup, m.ID = filepath.Dir(m.Cgroup), newID()
	m.Cgroup = filepath.Join(m.Cgroup, m.ID)
	_, err = r.createAs(ctx, m, rec, cfg, img)
	return m.ID, err
}

// createAs makes a container completely, or not at all.
func (r *Runtime) createAs(ctx context.Context, m meta, rec *record, cfg cri.ContainerConfig, img *image.Image) (*container, error) {
	c := newContainer(m, r.containerDir(m.ID))
	if err := r.create(ctx, c, rec, cfg, img); err != nil {
		return nil, errors.Join(err, r.removeContainer(context.WithoutCancel(ctx), c))
	}
	return c, nil
}

// create makes a container. What it leaves on an error is found by the container's id.
func (r *Runtime) create(ctx context.Context, c *container, rec *record, cfg cri.ContainerConfig, img *image.Image) error {
	if err := r.work.Acquire(ctx, 1); err != nil {
		return err
	}
	defer r.work.Release(1)
	rootfs := make(chan error, 1)
	var mounts []*types.Mount
	go func() {
		var err error
		mounts, err = r.prepareRootFS(ctx, c.meta.ID, img)
		rootfs <- err
	}()
	err := r.register(ctx, c, rec, cfg, img)
	defer c.joins.Close() //nolint:errcheck // it was only read; it may be nil
	if err = errors.Join(err, <-rootfs); err != nil {
		return err
	}
	r.addContainer(c)
	return r.createTask(ctx, c, mounts, cfg.Stdin)
}

// register writes the container down with containerd and opens its log.
func (r *Runtime) register(ctx context.Context, c *container, rec *record, cfg cri.ContainerConfig, img *image.Image) error {
	if err := os.Mkdir(c.dir, 0o711); err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	who, err := r.lookupUser(ctx, img, cfg.Security)
	if err != nil {
		return err
	}
	pidPath, err := r.pidNamespace(rec)
	if err != nil {
		return err
	}
	if cfg.TargetID != "" {
		if c.joins, err = r.openPIDs(c.meta.PodUID, cfg.TargetID); err != nil {
			return err
		}
		pidPath = fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), c.joins.Fd())
	}
	oci, err := spec.Build(spec.Input{
		Container: cfg, Sandbox: rec.Config, Image: img.Config, User: who, Cgroup: c.meta.Cgroup,
		SandboxDir: r.sandboxes.Dir(rec.Sandbox.ID), EtcDir: r.scratchDir(rec), PIDPath: pidPath, Host: spec.ThisHost(),
	})
	if err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	if c.output, err = r.startOutput(c, cfg.LogPath, true); err != nil {
		return err
	}
	return r.createRecord(ctx, c, oci, r.containerd.Snapshotter)
}

// startOutput starts reading a container's output; fresh: its process does not exist yet.
func (r *Runtime) startOutput(c *container, path string, fresh bool) (*stdio.Output, error) {
	return stdio.Start(stdio.Config{Dir: c.dir, LogPath: path, LogMaxSize: r.cfg.LogMaxSize, LogMaxFiles: r.cfg.LogMaxFiles,
		TTY: c.meta.TTY, Fresh: fresh, Log: r.cfg.Log})
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

// createRecord makes containerd's container.
func (r *Runtime) createRecord(ctx context.Context, c *container, oci *specs.Spec, snapshotter string) error {
	shim := c.meta.SandboxID
	if !r.containerd.Embedded() {
		shim = ""
		oci.Annotations = map[string]string{"io.containerd.runc.v2.group": c.meta.SandboxID}
	}
	specJSON, err := json.Marshal(oci)
	if err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	metaJSON, err := json.Marshal(c.meta)
	if err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	opts, err := typeurl.MarshalAny(r.containerd.RuncOptions())
	if err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	rec := containers.Container{
		ID: c.meta.ID, Image: c.meta.Image, SandboxID: shim,
		// For users of ctr or nerdctl.
		Labels: map[string]string{
			"io.kubernetes.pod.namespace": c.meta.PodNamespace, "io.kubernetes.pod.name": c.meta.PodName,
			"io.kubernetes.pod.uid": c.meta.PodUID, "io.kubernetes.container.name": c.meta.Name,
		},
		Runtime:    containers.RuntimeInfo{Name: r.containerd.Programs.Shim, Options: opts},
		Spec:       &anypb.Any{TypeUrl: embed.SpecType, Value: specJSON},
		Extensions: map[string]typeurl.Any{metaType: &anypb.Any{TypeUrl: metaType, Value: metaJSON}},
	}
	if snapshotter != "" {
		rec.Snapshotter, rec.SnapshotKey = snapshotter, c.meta.ID
	}
	if _, err := r.client.ContainerService().Create(ctx, rec); err != nil {
		return fmt.Errorf("containerd: container: %w", err)
	}
	return nil
}

// prepareRootFS makes the container's writable layer. Its gc.root label protects it from containerd's garbage
// collector; one without a container is removed at the next start.
func (r *Runtime) prepareRootFS(ctx context.Context, id string, img *image.Image) ([]*types.Mount, error) {
	mounts, err := r.client.SnapshotService(r.containerd.Snapshotter).Prepare(ctx, id, img.ChainID,
		snapshots.WithLabels(map[string]string{embed.GCRoot: "1"}))
	if err != nil {
		return nil, fmt.Errorf("containerd: root file system: %w", err)
	}
	var out []*types.Mount
	for _, m := range mounts {
		if m.Type == "overlay" {
			// The layer does not outlive the container, so nothing has to be written to disk when the
			// container syncs or when it is unmounted.
			m.Options = append(m.Options, "volatile")
		}
		out = append(out, &types.Mount{Type: m.Type, Source: m.Source, Options: m.Options})
	}
	return out, nil
}

// createTask has the shim and runc create the process, which waits before it executes the command.
func (r *Runtime) createTask(ctx context.Context, c *container, mounts []*types.Mount, stdin bool) error {
	req := &tasks.CreateTaskRequest{ContainerID: c.meta.ID, Rootfs: mounts, Terminal: c.meta.TTY}
	if c.output != nil {
		req.Stdout = filepath.Join(c.dir, "stdout")
		if !c.meta.TTY {
			req.Stderr = filepath.Join(c.dir, "stderr")
		}
	}
	if stdin {
		req.Stdin = filepath.Join(c.dir, "stdin")
		if err := stdio.MakeInput(req.Stdin); err != nil {
			return err
		}
	}
	resp, err := r.client.TaskService().Create(ctx, req)
	c.output.Opened()
	if err != nil {
		if msg, code, ok := startFailure(err); ok {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.state.StartError, c.state.ExitCode = msg, code
			return c.save(c.state)
		}
		return fmt.Errorf("containerd: create: %w", fromGRPC(err))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pid = resp.Pid
	return nil
}
