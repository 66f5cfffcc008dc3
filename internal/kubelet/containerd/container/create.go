package container

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/api/types"
	"github.com/containerd/containerd/containers"
	"github.com/containerd/containerd/snapshots"
	"github.com/containerd/typeurl/v2"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"google.golang.org/protobuf/types/known/anypb"

	"minik8s/internal/clock"
	"minik8s/internal/kubelet/containerd/embed"
	"minik8s/internal/kubelet/containerd/stdio"
	"minik8s/internal/kubelet/work"
)

// Ingredients are what a container is made of.
type Ingredients struct {
	// Meta is what is known about it. Create sets ID, Cgroup and CreatedAt.
	Meta Meta
	// CgroupParent is the cgroup in which it gets its own.
	CgroupParent string
	// ChainID names the image's layers, on which it gets a writable one. Empty: Spec says where its root file system is.
	ChainID string
	// Spec makes its specification, while the writable layer is made.
	Spec func(context.Context, Meta) (*specs.Spec, error)
	// Stdin gives it a standard input, which stays open until a client that has attached closes it.
	Stdin bool
}

// Create makes a container completely, or not at all. Its process exists then, and waits for Start. A command that
// cannot be executed is found out by runc here, but is the error of Start: see StartError.
func (s *Set) Create(ctx context.Context, in Ingredients) (*Container, error) {
	m := in.Meta
	m.ID, m.CreatedAt = newID(), clock.Now()
	m.Cgroup = filepath.Join(in.CgroupParent, m.ID)
	c := s.container(m)
	if err := c.create(ctx, in); err != nil {
		return nil, errors.Join(err, c.Remove(context.WithoutCancel(ctx)))
	}
	return c, nil
}

// create makes a container. What it leaves on an error is found by the container's id.
func (c *Container) create(ctx context.Context, in Ingredients) error {
	if err := c.set.cfg.Work.Acquire(ctx, work.Container); err != nil {
		return err
	}
	defer c.set.cfg.Work.Release()
	rootfs := make(chan error, 1)
	var mounts []*types.Mount
	go func() {
		var err error
		mounts, err = c.prepareRootFS(ctx, in.ChainID)
		rootfs <- err
	}()
	err := c.register(ctx, in)
	if err = errors.Join(err, <-rootfs); err != nil {
		return err
	}
	c.set.add(c)
	return c.createTask(ctx, mounts, in.Stdin)
}

// register opens the container's log and writes it down with containerd.
func (c *Container) register(ctx context.Context, in Ingredients) error {
	if err := os.Mkdir(c.dir, 0o711); err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	oci, err := in.Spec(ctx, c.Meta)
	if err != nil {
		return err
	}
	if err := c.openOutput(true); err != nil {
		return err
	}
	return c.record(ctx, oci, in.ChainID != "")
}

// openOutput begins to read the container's output, if it has a log; fresh: its process does not exist yet.
func (c *Container) openOutput(fresh bool) (err error) {
	if c.Meta.LogPath == "" {
		return nil
	}
	cfg := &c.set.cfg
	c.output, err = stdio.Start(stdio.Config{Dir: c.dir, LogPath: c.Meta.LogPath, LogMaxSize: cfg.LogMaxSize, LogMaxFiles: cfg.LogMaxFiles,
		TTY: c.Meta.TTY, Fresh: fresh, Log: cfg.Log})
	return err
}

// record makes containerd's container; snapshot: it has a writable layer.
func (c *Container) record(ctx context.Context, oci *specs.Spec, snapshot bool) error {
	containerd := c.set.cfg.Containerd
	if !containerd.Embedded() { // the containers of a pod share a shim
		oci.Annotations = map[string]string{"io.containerd.runc.v2.group": c.Meta.SandboxID}
	}
	specJSON, err := json.Marshal(oci)
	if err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	metaJSON, err := json.Marshal(c.Meta)
	if err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	rec := containers.Container{
		ID: c.Meta.ID, Image: c.Meta.Image,
		// For users of ctr or nerdctl.
		Labels: map[string]string{
			"io.kubernetes.pod.namespace": c.Meta.PodNamespace, "io.kubernetes.pod.name": c.Meta.PodName,
			"io.kubernetes.pod.uid": c.Meta.PodUID, "io.kubernetes.container.name": c.Meta.Name,
		},
		Runtime:    containers.RuntimeInfo{Name: embed.RuntimeName},
		Spec:       &anypb.Any{TypeUrl: embed.SpecType, Value: specJSON},
		Extensions: map[string]typeurl.Any{metaType: &anypb.Any{TypeUrl: metaType, Value: metaJSON}},
	}
	if snapshot {
		rec.Snapshotter, rec.SnapshotKey = containerd.Snapshotter, c.Meta.ID
	}
	if _, err := containerd.Client.ContainerService().Create(ctx, rec); err != nil {
		return fmt.Errorf("containerd: container: %w", err)
	}
	return nil
}

// prepareRootFS makes the container's writable layer, if it has one. Its gc.root label protects it from containerd's
// garbage collector; one without a container is removed at the next start.
func (c *Container) prepareRootFS(ctx context.Context, chainID string) ([]*types.Mount, error) {
	if chainID == "" {
		return nil, nil
	}
	mounts, err := c.set.snapshots().Prepare(ctx, c.Meta.ID, chainID, snapshots.WithLabels(map[string]string{embed.GCRoot: "1"}))
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

// OwnsLayer reports whether a snapshot is the writable layer of a container, which may not exist any more.
func OwnsLayer(i snapshots.Info) bool {
	return i.Kind != snapshots.KindCommitted && i.Labels[embed.GCRoot] != ""
}

func (s *Set) snapshots() snapshots.Snapshotter {
	return s.cfg.Containerd.Client.SnapshotService(s.cfg.Containerd.Snapshotter)
}

// createTask has containerd create the process, which waits before it executes the command.
func (c *Container) createTask(ctx context.Context, mounts []*types.Mount, stdin bool) error {
	req := &tasks.CreateTaskRequest{ContainerID: c.Meta.ID, Rootfs: mounts, Terminal: c.Meta.TTY}
	if c.output != nil {
		req.Stdout = filepath.Join(c.dir, "stdout")
		if !c.Meta.TTY {
			req.Stderr = filepath.Join(c.dir, "stderr")
		}
	}
	if stdin {
		req.Stdin = filepath.Join(c.dir, "stdin")
		if err := stdio.MakeInput(req.Stdin); err != nil {
			return err
		}
	}
	resp, err := c.set.tasks().Create(ctx, req)
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

// newID is the name of a container or process: random, of hexadecimal digits.
func newID() string {
	var b [32]byte
	rand.Read(b[:]) // never fails, by its documentation
	return hex.EncodeToString(b[:])
}
