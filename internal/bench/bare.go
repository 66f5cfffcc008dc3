package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/containerd/containerd"
	"github.com/containerd/containerd/images"
)

// importImage imports an archive with one image and returns the image's name.
func importImage(ctx context.Context, c *containerd.Client, archive string) (string, error) {
	f, err := os.Open(archive)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // it was only read
	found, err := c.Import(ctx, f)
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "", errors.New(archive + " holds no image")
	}
	return found[0].Name, nil
}

// removeCgroup removes a cgroup whose last process may still be ending.
func removeCgroup(dir string) (err error) {
	for range 100 {
		if err = os.Remove(dir); !errors.Is(err, syscall.EBUSY) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

func removeImage(ctx context.Context, c *containerd.Client, name string, d *daemon) error {
	// The machine has either one cgroup or one for each controller.
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		dirs, err := filepath.Glob(root + d.cgroup + "-bare")
		for _, dir := range dirs {
			below, gerr := filepath.Glob(dir + "/bare-*") // of a start that failed
			err = errors.Join(err, gerr)
			for _, sub := range append(below, dir) {
				err = errors.Join(err, removeCgroup(sub))
			}
		}
		if err != nil { // no figure depends on it
			fmt.Fprintln(os.Stderr, "a cgroup of the bare containers stays:", err)
		}
	}
	return c.ImageService().Delete(ctx, name, images.SynchronousDelete())
}
