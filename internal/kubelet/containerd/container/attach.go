package container

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

// Attach joins a client to the container's own streams, until the container has ended and its output is passed on, or
// ctx ends. The error is cri.ErrNotRunning if it has none, or stdio.ErrTooSlow for a client that stopped reading.
func (c *Container) Attach(ctx context.Context, cfg cri.AttachConfig) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !c.Running() || c.output == nil {
		return cri.ErrNotRunning
	}
	l := c.output.Listen()
	defer l.Close()
	if cfg.Stdin != nil {
		if err := c.attachInput(ctx, cfg.Stdin); err != nil {
			return err
		}
	}
	go c.resize(ctx, "", cfg.Resize)
	return l.Copy(ctx, cfg.Stdout, cfg.Stderr, c.exited)
}

// attachInput passes input on to the container until one of them ends. It is not an error if the container has no
// input, or its input has ended.
func (c *Container) attachInput(ctx context.Context, from io.Reader) error {
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
		if c.Meta.StdinOnce {
			c.set.tasks().CloseIO(context.WithoutCancel(ctx), &tasks.CloseIORequest{ContainerID: c.Meta.ID, Stdin: true})
		}
	}()
	return nil
}

// Attached is how many clients are attached.
func (c *Container) Attached() int {
	if c.output == nil {
		return 0
	}
	return c.output.Listeners()
}
