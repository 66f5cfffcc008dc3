package pods

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/containerd/containerd"
	"github.com/containerd/containerd/cio"
	"github.com/containerd/containerd/images"
	"github.com/containerd/containerd/namespaces"
	"github.com/containerd/containerd/oci"

	"minik8s/internal/bench/bed"
)

// bareStarts measures the lower limit: create and start of one container with containerd alone, without a pod.
func bareStarts(d *bed.Daemon) (bed.Samples, error) {
	c, err := containerd.New(filepath.Join(d.Dir, "containerd", "containerd.sock"))
	if err != nil {
		return nil, err
	}
	defer c.Close() //nolint:errcheck // it was only used
	ctx := namespaces.WithNamespace(context.Background(), "minik8s-bench")
	// The lease is held until the end, or else containerd collects what it considers unused.
	ctx, release, err := c.WithLease(ctx)
	if err != nil {
		return nil, err
	}
	defer release(context.WithoutCancel(ctx)) //nolint:errcheck // it ends with the daemon
	name, err := importImage(ctx, c, filepath.Join("build", "images", "busybox.tar"))
	if err != nil {
		return nil, err
	}
	img, err := c.GetImage(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := img.Unpack(ctx, "overlayfs"); err != nil {
		return nil, err
	}
	var times bed.Samples
	for i := range oneByOne {
		took, err := bareStart(ctx, c, d, img, fmt.Sprintf("bare-%d", i))
		if err != nil {
			return nil, fmt.Errorf("a bare start: %w", err)
		}
		times = append(times, took)
	}
	return times, removeImage(ctx, c, name, d)
}

// bareStart creates and starts a container once, measures the time, and removes the container.
func bareStart(ctx context.Context, c *containerd.Client, d *bed.Daemon, img containerd.Image, id string) (time.Duration, error) {
	began := time.Now()
	ct, err := c.NewContainer(ctx, id, containerd.WithSnapshotter("overlayfs"), containerd.WithNewSnapshot(id, img),
		containerd.WithNewSpec(oci.WithImageConfig(img), oci.WithProcessArgs(bed.Polite...), oci.WithCgroup(d.Cgroup+"-bare/"+id)))
	if err != nil {
		return 0, err
	}
	defer ct.Delete(ctx, containerd.WithSnapshotCleanup) //nolint:errcheck // the daemon's directory goes in the end
	task, err := ct.NewTask(ctx, cio.NullIO)
	if err != nil {
		return 0, err
	}
	if err := task.Start(ctx); err != nil {
		return 0, err
	}
	took := time.Since(began)
	_, err = task.Delete(ctx, containerd.WithProcessKill)
	return took, err
}

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

// removeImage removes an image and the cgroup of the containers that were made from it.
func removeImage(ctx context.Context, c *containerd.Client, name string, d *bed.Daemon) error {
	// The machine has either one cgroup or one for each controller.
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		dirs, err := filepath.Glob(root + d.Cgroup + "-bare")
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
