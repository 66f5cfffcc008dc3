package containerd

import (
	"context"
	"fmt"
	"time"

	"minik8s/internal/kubelet/containerd/container"
	"minik8s/internal/kubelet/cri"
)

// StartContainer implements cri.Runtime.
func (r *Runtime) StartContainer(ctx context.Context, id string) error {
	defer r.sandboxes.Busy()()
	c, err := r.container(id)
	if err != nil {
		return err
	}
	return c.Start(r.ns(ctx))
}

// StopContainer implements cri.Runtime.
func (r *Runtime) StopContainer(ctx context.Context, id string, grace time.Duration) error {
	defer r.sandboxes.Busy()()
	c := r.containers.Get(id)
	if c == nil {
		return nil
	}
	return c.Stop(r.ns(ctx), grace)
}

// RemoveContainer implements cri.Runtime.
func (r *Runtime) RemoveContainer(ctx context.Context, id string) error {
	defer r.sandboxes.Busy()()
	c := r.containers.Get(id)
	if c == nil {
		return nil
	}
	return c.Remove(r.ns(ctx))
}

// Exec implements cri.Runtime.
func (r *Runtime) Exec(ctx context.Context, id string, cfg cri.ExecConfig) (int32, error) {
	c, err := r.container(id)
	if err != nil {
		return 0, err
	}
	return c.Exec(r.ns(ctx), cfg)
}

// Attach implements cri.Runtime.
func (r *Runtime) Attach(ctx context.Context, id string, cfg cri.AttachConfig) error {
	c, err := r.container(id)
	if err != nil {
		return err
	}
	return c.Attach(r.ns(ctx), cfg)
}

// container is the one with an id; it is an error if there is none.
func (r *Runtime) container(id string) (*container.Container, error) {
	c := r.containers.Get(id)
	if c == nil {
		return nil, fmt.Errorf("containerd: no container %s", id)
	}
	return c, nil
}
