package containerd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"golang.org/x/sys/unix"

	"minik8s/internal/kubelet/cri"
)

// Attach implements cri.Runtime.
func (r *Runtime) Attach(ctx context.Context, id string, cfg cri.AttachConfig) error {
	ctx, cancel := context.WithCancel(r.ns(ctx))
	defer cancel()
	c := r.container(id)
	if c == nil {
		return fmt.Errorf("containerd: no container %s", id)
	}
	if s, _ := c.get(); s.State != cri.Running || c.output == nil {
		return cri.ErrNotRunning
	}
	l := c.output.Listen()
	defer l.Close()
	if cfg.Stdin != nil {
		if err := r.attachInput(ctx, c, cfg.Stdin); err != nil {
			return err
		}
	}
	go r.resize(ctx, id, "", cfg.Resize)
	return l.Copy(ctx, cfg.Stdout, cfg.Stderr, c.exited)
}

// attachInput passes input on to the container until one of them ends. It is not an error if the container has no
// input, or its input has ended.
func (r *Runtime) attachInput(ctx context.Context, c *container, from io.Reader) error {
	f, err := os.OpenFile(filepath.Join(c.dir, "stdin"), os.O_WRONLY|unix.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENXIO):
		return nil
	case err != nil:
		return fmt.Errorf("containerd: attach: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { f.Close() })
	go func() {
		defer stop()
		io.Copy(f, from) //nolint:errcheck // a container need not read all of it
		f.Close()
		if c.meta.StdinOnce {
			r.client.TaskService().CloseIO(context.WithoutCancel(ctx), &tasks.CloseIORequest{ContainerID: c.meta.ID, Stdin: true})
		}
	}()
	return nil
}
