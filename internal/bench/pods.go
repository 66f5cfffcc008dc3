package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/containerd/containerd"
	"github.com/containerd/containerd/cio"
	"github.com/containerd/containerd/namespaces"
	"github.com/containerd/containerd/oci"
)

const (
	oneByOne = 30
	atOnce   = 100
)

// polite is a command that ends at once on SIGTERM.
var polite = []string{"sh", "-c", "trap exit TERM; while :; do sleep 3600 & wait $!; done"}

// pods measures real pods with one container.
func pods(r *report) error {
	return withDaemon(true, func(d *daemon) error { return realPods(r, d) })
}

func realPods(r *report, d *daemon) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ch, err := watch(ctx, d.http, "http://minik8s"+podsPath+"?watch=1")
	if err != nil {
		return err
	}
	bare, err := bareStarts(d)
	if err != nil {
		return err
	}
	if err := sequential(r, d, ch, bare); err != nil {
		return err
	}
	return together(r, d, ch, bare)
}

func imagePresent(d *daemon) bool {
	var nodes struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	if d.do("GET", "/api/v1/nodes", nil, &nodes) != nil || len(nodes.Items) == 0 {
		return false
	}
	var images struct{ Items []struct{ Tags []string } }
	return d.do("GET", "/minik8s/v1/nodes/"+nodes.Items[0].Metadata.Name+"/images", nil, &images) == nil && len(images.Items) >= 2
}

// bareStarts measures the lower limit: create and start of one container with containerd alone, without a pod.
func bareStarts(d *daemon) (samples, error) {
	c, err := containerd.New(filepath.Join(d.dir, "containerd", "containerd.sock"))
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
	var times samples
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
func bareStart(ctx context.Context, c *containerd.Client, d *daemon, img containerd.Image, id string) (time.Duration, error) {
	began := time.Now()
	ct, err := c.NewContainer(ctx, id, containerd.WithSnapshotter("overlayfs"), containerd.WithNewSnapshot(id, img),
		containerd.WithNewSpec(oci.WithImageConfig(img), oci.WithProcessArgs(polite...), oci.WithCgroup(d.cgroup+"-bare/"+id)))
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

// sequential measures pods that are started one after the other.
func sequential(r *report, d *daemon, ch <-chan seen, bare samples) error {
	var scheduled, running, gone samples
	for i := range oneByOne {
		name := fmt.Sprintf("one-%d", i)
		began := time.Now()
		if err := d.do("POST", podsPath, pod(name, "busybox", polite...), nil); err != nil {
			return err
		}
		bound := false
		e, err := wait(ch, 20*time.Second, func(e seen) bool {
			if !bound && e.Object.Metadata.Name == name && e.Object.Spec.NodeName != "" {
				bound = true
				scheduled = append(scheduled, e.at.Sub(began))
			}
			return e.Object.Metadata.Name == name && e.Object.Status.Phase == "Running"
		})
		if err != nil {
			return err
		}
		running = append(running, e.at.Sub(began))
		time.Sleep(150 * time.Millisecond) // like a person's pace; the shell in the pod has set its trap by then
		began = time.Now()
		if err := d.do("DELETE", podsPath+"/"+name, nil, nil); err != nil {
			return err
		}
		e, err = wait(ch, 20*time.Second, func(e seen) bool { return e.Object.Metadata.Name == name && e.Type == "DELETED" })
		if err != nil {
			return err
		}
		gone = append(gone, e.at.Sub(began))
		time.Sleep(150 * time.Millisecond)
	}
	floor := fmt.Sprintf("%.2f x the bare create and start (%.1f ms)", float64(running.p(50))/float64(bare.p(50)), ms(bare.p(50)))
	r.add("POST to Running seen by watch, p50", ms(running.p(50)), "ms", "<= 30 ms", floor)
	r.add("POST to Running seen by watch, p99", ms(running.p(99)), "ms", "<= 60 ms", fmt.Sprintf("bare p99 %.1f ms", ms(bare.p(99))))
	r.add("POST to scheduled, p50", ms(scheduled.p(50)), "ms", "<= 1.5 ms", "two synced writes")
	r.add("delete to gone, p50", ms(gone.p(50)), "ms", "<= 100 ms", "the signal, and what the kernel takes to end namespaces")
	return nil
}

// together measures many pods at once.
func together(r *report, d *daemon, ch <-chan seen, bare samples) error {
	began := time.Now()
	rate, _, err := hammer(atOnce, func(i int) error {
		return d.do("POST", podsPath, pod(fmt.Sprintf("many-%d", i), "busybox", polite...), nil)
	})
	if err != nil {
		return err
	}
	up := map[string]bool{}
	e, err := wait(ch, 2*time.Minute, func(e seen) bool {
		if e.Object.Status.Phase == "Running" {
			up[e.Object.Metadata.Name] = true
		}
		return len(up) == atOnce
	})
	if err != nil {
		return fmt.Errorf("%d of %d pods run: %w", len(up), atOnce, err)
	}
	took := e.at.Sub(began)
	r.add(fmt.Sprintf("%d pods at once: all Running", atOnce), took.Seconds(), "s", "<= 1.8 s",
		fmt.Sprintf("%.1f ms each; bare, one by one, %.1f ms; posted at %.0f/s", ms(took)/atOnce, ms(bare.p(50)), rate))
	time.Sleep(time.Second)
	began = time.Now()
	if err := d.do("DELETE", podsPath, nil, nil); err != nil {
		return err
	}
	gone := map[string]bool{}
	e, err = wait(ch, 2*time.Minute, func(e seen) bool {
		if e.Type == "DELETED" {
			gone[e.Object.Metadata.Name] = true
		}
		return len(gone) == atOnce
	})
	if err != nil {
		return fmt.Errorf("%d of %d pods are gone: %w", len(gone), atOnce, err)
	}
	r.add(fmt.Sprintf("%d pods at once: all gone", atOnce), e.at.Sub(began).Seconds(), "s", "<= 0.8 s", "")
	return nil
}
