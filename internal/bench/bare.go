package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/containerd/containerd"
	"github.com/containerd/containerd/images"
	"github.com/containerd/containerd/runtime/v2/runc/options"
)

func importImage(ctx context.Context, c *containerd.Client, archive string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	_, err = c.Import(ctx, f)
	return err
}

func runcOptions(d *daemon) *options.Options {
	return &options.Options{BinaryName: filepath.Join(d.dir, "bin", "runc")}
}

func removeImage(ctx context.Context, c *containerd.Client, name string, d *daemon) error {
	os.Remove("/sys/fs/cgroup" + d.cgroup + "-bare") //nolint:errcheck // there on some machines only
	return c.ImageService().Delete(ctx, name, images.SynchronousDelete())
}
