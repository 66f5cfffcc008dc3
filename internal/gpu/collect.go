package gpu

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/clock"
	"minik8s/internal/gpu/plan"
	"minik8s/internal/gpu/results"
	"minik8s/internal/slurm"
	"minik8s/internal/slurm/batch"
)

// collection is a job whose results are on their way.
type collection struct {
	cancel context.CancelFunc
	done   bool
	got    minik8s.GpuJobResults
	err    error
	failed int // in a row
}

// finish brings the results of an ended job back. When the status has said so, and not before, it clears up: whoever is
// killed between the two must not fetch again from a folder that is gone.
func (g *Controller) finish(ctx context.Context, obj *minik8s.GpuJob) error {
	s := &obj.Status
	layout, there := plan.Layout(obj)
	if !there {
		return nil
	}
	if !apimeta.IsStatusConditionTrue(s.Conditions, minik8s.GpuJobResultsReady) {
		if got, err := g.kept(obj); err == nil {
			g.ready(obj, got)
			return nil
		}
		g.mu.Lock()
		c := g.collecting[obj.UID]
		if c == nil || c.done && c.err != nil {
			if c != nil {
				plan.Set(s, minik8s.GpuJobResultsReady, false, "CollectionFailed", c.err.Error(), clock.Now())
			}
			g.collect(obj, layout, c)
			g.mu.Unlock()
			return nil
		}
		done, got := c.done, c.got
		g.mu.Unlock()
		if !done {
			return nil
		}
		g.ready(obj, got)
		return nil
	}
	if keep(obj) {
		return nil
	}
	cluster, _, err := g.links.For(ctx, placeOf(obj))
	if err == nil {
		err = cluster.Remove(ctx, layout)
	}
	if err != nil {
		g.loop.AddAfter(keyOf(obj), retryAfter)
		return nil
	}
	s.Folder = ""
	return nil
}

// kept are the results that were fetched already, by a daemon that was killed before it could say so.
func (g *Controller) kept(obj *minik8s.GpuJob) (minik8s.GpuJobResults, error) {
	list, err := g.store.List(string(obj.UID))
	got := minik8s.GpuJobResults{Files: int32(len(list)), Master: g.master}
	for _, f := range list {
		got.Bytes += f.Size
	}
	return got, err
}

// ready says that the results are here.
func (g *Controller) ready(obj *minik8s.GpuJob, got minik8s.GpuJobResults) {
	g.mu.Lock()
	delete(g.collecting, obj.UID)
	g.mu.Unlock()
	obj.Status.Results = &got
	plan.Set(&obj.Status, minik8s.GpuJobResultsReady, true, "Collected", fmt.Sprintf("%d files, %d bytes", got.Files, got.Bytes), clock.Now())
}

// keep reports whether the folder of an ended job stays on the cluster until the object is deleted.
func keep(obj *minik8s.GpuJob) bool {
	switch obj.Spec.Cleanup {
	case minik8s.CleanupNever:
		return true
	case minik8s.CleanupAlways:
		return false
	}
	return !apimeta.IsStatusConditionTrue(obj.Status.Conditions, minik8s.GpuJobComplete)
}

// collect begins to bring results back, or begins anew after a while; mu is held.
func (g *Controller) collect(obj *minik8s.GpuJob, layout batch.Layout, before *collection) {
	c := &collection{}
	running, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	pause := time.Duration(0)
	if before != nil {
		c.failed = before.failed + 1
		pause = min(time.Second<<min(c.failed, 8), 5*time.Minute)
	}
	g.collecting[obj.UID] = c
	g.tasks.Go(func(ctx context.Context) error {
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		got, err := g.fetch(running, obj, layout, pause)
		g.mu.Lock()
		defer g.mu.Unlock()
		c.done, c.got, c.err = true, got, err
		if g.collecting[obj.UID] == c && running.Err() == nil {
			g.loop.Add(keyOf(obj))
		} else {
			delete(g.collecting, obj.UID)
		}
		return nil
	})
}

// fetch brings the files of a job back.
func (g *Controller) fetch(ctx context.Context, obj *minik8s.GpuJob, layout batch.Layout, pause time.Duration) (minik8s.GpuJobResults, error) {
	var none minik8s.GpuJobResults
	select {
	case <-time.After(pause):
	case <-ctx.Done():
		return none, ctx.Err()
	}
	select {
	case g.sending <- struct{}{}:
		defer func() { <-g.sending }()
	case <-ctx.Done():
		return none, ctx.Err()
	}
	cluster, _, err := g.links.For(ctx, placeOf(obj))
	if err != nil {
		return none, err
	}
	entries, err := cluster.List(ctx, layout)
	if err != nil {
		return none, err
	}
	size, names := map[string]int64{}, []string(nil)
	for _, e := range entries {
		size[e.Path], names = e.Size, append(names, e.Path)
	}
	names = plan.Wanted(obj, names)
	in, err := g.store.Incoming(string(obj.UID))
	if err != nil {
		return none, err
	}
	defer in.Close() //nolint:errcheck // the files were synced
	// The cluster sums up while the files come.
	type sums struct {
		of  []string
		err error
	}
	summed := make(chan sums, 1)
	go func() {
		of, err := cluster.Sums(ctx, layout, names)
		summed <- sums{of, err}
	}()
	sum := make([]string, len(names))
	for i, n := range names {
		if sum[i], err = copyFile(ctx, cluster, layout, in, n, size[n]); err != nil {
			<-summed
			return none, err
		}
	}
	their := <-summed
	if their.err != nil {
		return none, their.err
	}
	got := minik8s.GpuJobResults{Files: int32(len(names)), Master: g.master}
	list := make([]results.File, len(names))
	for i, n := range names {
		list[i] = results.File{Path: n, Size: size[n], SHA256: their.of[i]}
		if err := results.Check(in, n, sum[i], their.of[i]); err != nil {
			return none, err
		}
		got.Bytes += size[n]
	}
	return got, g.store.Complete(string(obj.UID), list)
}

// copyFile copies a file, from where an earlier attempt broke, and returns its checksum.
func copyFile(ctx context.Context, cluster *slurm.Cluster, layout batch.Layout, in *os.Root, name string, size int64) (sum string, err error) {
	to, err := results.Resume(in, name, size)
	if err != nil {
		return "", err
	}
	if to.Have() < size {
		err = copyRest(ctx, cluster, layout, to, name)
	}
	if err == nil && to.Have() != size {
		err = fmt.Errorf("%s: %d of %d bytes came", name, to.Have(), size)
	}
	if err != nil {
		to.Close() //nolint:errcheck // it failed already
		return "", err
	}
	return to.Finish()
}

func copyRest(ctx context.Context, cluster *slurm.Cluster, layout batch.Layout, to *results.Part, name string) error {
	from, _, err := cluster.Read(ctx, layout, name)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { from.Close() })
	defer stop()
	defer from.Close() //nolint:errcheck // it was only read
	if _, err := from.Seek(to.Have(), io.SeekStart); err != nil {
		return err
	}
	if _, err := from.WriteTo(to); err != nil {
		return fmt.Errorf("%s: after %d bytes: %w", name, to.Have(), err)
	}
	return nil
}
