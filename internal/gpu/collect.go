package gpu

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/clock"
	"minik8s/internal/gpu/plan"
	"minik8s/internal/gpu/results"
	"minik8s/internal/slurm/batch"
)

// collection is a job whose results are on their way.
type collection struct {
	transfer *transfer
	cancel   context.CancelFunc
	done     bool
	err      error
	failed   int // in a row
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
		g.mu.Lock()
		c := g.collecting[obj.UID]
		came := c != nil && c.done && c.err == nil
		g.mu.Unlock()
		err := g.ready(obj)
		if err == nil { // now, or by a daemon that was killed before it could say so
			return nil
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		if came {
			c.err = err
		}
		if c != nil && (!c.done || c.err == nil) {
			return nil // its end wakes this job
		}
		if c != nil {
			reason, message := g.failed(c.err)
			plan.Set(s, minik8s.GpuJobResultsReady, false, reason, message, clock.Now())
		}
		g.collect(obj, layout, c)
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

// failed is why an attempt failed: a reason and a message for the condition ResultsReady.
func (g *Controller) failed(err error) (reason, message string) {
	if full := (*results.FullError)(nil); errors.As(err, &full) {
		return plan.ReasonDiskFull, fmt.Sprintf("on the disk of master %s, which has the cluster's own data too: %v. Make room there, delete GPU jobs whose results are no longer needed, or name fewer files in spec.results; it is tried again", g.master, full)
	}
	return "CollectionFailed", err.Error()
}

// ready says that the results are here, if they are.
func (g *Controller) ready(obj *minik8s.GpuJob) error {
	list, err := g.store.List(string(obj.UID))
	if err != nil {
		return err
	}
	left, err := g.store.Left(string(obj.UID))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	g.mu.Lock()
	delete(g.collecting, obj.UID)
	g.mu.Unlock()
	got := minik8s.GpuJobResults{Files: int32(len(list)), Master: g.master}
	for _, f := range list {
		got.Bytes += f.Size
	}
	obj.Status.Results = &got
	reason, message := plan.ReasonCollected, fmt.Sprintf("%d files, %d bytes%s", got.Files, got.Bytes, leftOut(left))
	if left.There() {
		reason = plan.ReasonInPart
		if obj.Spec.Cleanup != minik8s.CleanupAlways {
			message += "; the job's folder stays on the cluster until the job is deleted"
		}
	}
	plan.Set(&obj.Status, minik8s.GpuJobResultsReady, true, reason, message, clock.Now())
	return nil
}

// keep reports whether the folder of an ended job stays on the cluster until the object is deleted. What could not be brought here
// is there alone.
func keep(obj *minik8s.GpuJob) bool {
	switch obj.Spec.Cleanup {
	case minik8s.CleanupNever:
		return true
	case minik8s.CleanupAlways:
		return false
	}
	ready := apimeta.FindStatusCondition(obj.Status.Conditions, minik8s.GpuJobResultsReady)
	return !apimeta.IsStatusConditionTrue(obj.Status.Conditions, minik8s.GpuJobComplete) || ready != nil && ready.Reason == plan.ReasonInPart
}

// collect begins to bring results back, or begins anew after a while; mu is held.
func (g *Controller) collect(obj *minik8s.GpuJob, layout batch.Layout, before *collection) {
	c := &collection{}
	running, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	pause := time.Duration(0)
	if before != nil {
		c.transfer, c.failed = before.transfer, before.failed+1
		pause = min(time.Second<<min(c.failed, 8), 5*time.Minute)
	} else {
		c.transfer = newTransfer(string(obj.UID), layout, g.store)
	}
	c.transfer.wanted = func(names []string) []string { return plan.Wanted(obj, names) } // results may be changed meanwhile
	c.transfer.unmatched = func(names []string) []string { return plan.Unmatched(obj, names) }
	g.collecting[obj.UID] = c
	g.tasks.Go(func(ctx context.Context) error {
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		err := g.fetch(running, placeOf(obj), c.transfer, pause)
		g.mu.Lock()
		defer g.mu.Unlock()
		c.done, c.err = true, err
		if g.collecting[obj.UID] == c && running.Err() == nil {
			g.loop.Add(keyOf(obj))
		} else {
			delete(g.collecting, obj.UID)
		}
		return nil
	})
}

// fetch is an attempt to bring the files of a job back.
func (g *Controller) fetch(ctx context.Context, at place, t *transfer, pause time.Duration) error {
	select {
	case <-time.After(pause):
	case <-ctx.Done():
		return ctx.Err()
	}
	places := g.places(at.whole())
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	case <-ctx.Done():
		return ctx.Err()
	}
	cluster, _, err := g.links.For(ctx, at)
	if err != nil {
		return err
	}
	defer g.links.hold(at)()
	return t.try(ctx, cluster)
}

// places has one for each collection that is under way from a cluster, and room for the others that may be.
func (g *Controller) places(at place) chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sending[at] == nil {
		g.sending[at] = make(chan struct{}, transfers)
	}
	return g.sending[at]
}
