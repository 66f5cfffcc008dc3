package gpu

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/gpu/plan"
	"minik8s/internal/slurm"
	"minik8s/internal/slurm/batch"
)

const (
	// marksEvery is the time between two looks at the marks: one request over the connection.
	marksEvery = time.Second
	// queueGap is the least time between two questions to Slurm's controller, so that it has at most four a minute.
	queueGap = 15 * time.Second
	// settled is how long after its submission a job that Slurm does not list counts as gone.
	settled = 5 * time.Second
	// idleLooks is how many looks without a job a follower lives.
	idleLooks = 3
)

// follower follows the jobs of one place while there are any.
type follower struct {
	g    *Controller
	at   place
	mu   sync.Mutex
	done []batch.Mark // that statuses have: to be forgotten on the cluster
	soon bool         // Slurm is to be asked as soon as it may
}

// follow makes sure that a place is followed; soon asks Slurm as soon as it may.
func (g *Controller) follow(at place, soon bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.followers[at]
	if f == nil {
		f = &follower{g: g, at: at, soon: true}
		g.followers[at] = f
		g.tasks.Go(func(ctx context.Context) error {
			f.run(ctx)
			return nil
		})
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.soon = f.soon || soon
}

func (f *follower) forget(marks []batch.Mark) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = append(f.done, marks...)
}

// active are the place's jobs that are not at their ends.
func (f *follower) active() []*minik8s.GpuJob {
	var out []*minik8s.GpuJob
	for _, j := range f.g.jobs.List() {
		if j.DeletionTimestamp == nil && j.Status.Folder != "" && placeOf(j) == f.at && !plan.Ended(&j.Status) {
			out = append(out, j)
		}
	}
	return out
}

func (f *follower) run(ctx context.Context) {
	tick := time.NewTicker(marksEvery)
	defer tick.Stop()
	asked, idle := time.Time{}, 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		jobs := f.active()
		if idle++; len(jobs) > 0 {
			idle = 0
		}
		f.g.mu.Lock()
		if idle > idleLooks {
			delete(f.g.followers, f.at)
			f.g.mu.Unlock()
			return
		}
		f.g.mu.Unlock()
		cluster, obj, err := f.g.links.For(ctx, f.at)
		if err == nil {
			err = f.look(ctx, cluster)
		}
		if err == nil && len(jobs) > 0 && f.mayAsk(asked, obj) {
			asked = time.Now()
			err = f.ask(ctx, cluster, jobs)
		}
		f.g.report(ctx, f.at.namespace, f.at.cluster, err)
	}
}

// look reads the marks, and forgets those that are written down.
func (f *follower) look(ctx context.Context, cluster *slurm.Cluster) error {
	marks, err := cluster.Marks(ctx)
	if err != nil {
		return err
	}
	f.mu.Lock()
	done := f.done
	f.done = nil
	f.mu.Unlock()
	var drop []batch.Mark
	for _, m := range marks {
		if slices.Contains(done, m) {
			drop = append(drop, m)
			continue
		}
		known := f.g.tell(types.UID(m.UID), func(n *plan.News) {
			if !slices.Contains(n.Marks, m) {
				n.Marks = append(n.Marks, m)
			}
		})
		if !known { // of a job that was deleted
			drop = append(drop, m)
		}
	}
	return cluster.Forget(ctx, drop)
}

// mayAsk reports whether Slurm's controller is to be asked now.
func (f *follower) mayAsk(asked time.Time, obj *minik8s.SlurmCluster) bool {
	every := time.Duration(obj.Spec.PollSeconds) * time.Second
	if every <= 0 {
		every = 2 * queueGap
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	since := time.Since(asked)
	if since >= every || f.soon && since >= min(queueGap, every) {
		f.soon = false
		return true
	}
	return false
}

// ask asks Slurm for all jobs at once, and its accounting for those that it no longer has.
func (f *follower) ask(ctx context.Context, cluster *slurm.Cluster, jobs []*minik8s.GpuJob) error {
	began := time.Now()
	queue, err := cluster.Queue(ctx)
	if err != nil {
		return err
	}
	byUID := map[string][]batch.Seen{}
	for _, s := range queue {
		if uid, ok := batch.UIDOf(s.Name); ok {
			byUID[uid] = append(byUID[uid], s)
		}
	}
	var lost []*minik8s.GpuJob
	for _, j := range jobs {
		seen := byUID[string(j.UID)]
		switch {
		case len(seen) > 0:
			f.g.tell(j.UID, func(n *plan.News) { n.Seen, n.Vanished = seen, false })
		case j.Status.JobID != "" && j.Status.SubmitTime != nil && j.Status.SubmitTime.Add(settled).Before(began):
			lost = append(lost, j)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return f.trace(ctx, cluster, lost)
}

// trace finds out how jobs ended that Slurm's queue no longer has.
func (f *follower) trace(ctx context.Context, cluster *slurm.Cluster, lost []*minik8s.GpuJob) error {
	ids := make([]string, len(lost))
	for i, j := range lost {
		ids[i] = j.Status.JobID
	}
	account, err := cluster.Account(ctx, ids)
	if err != nil {
		return err
	}
	byUID := map[string][]batch.Seen{}
	for _, s := range account {
		if uid, ok := batch.UIDOf(s.Name); ok && batch.Ended(s.State) {
			byUID[uid] = append(byUID[uid], s)
		}
	}
	for _, j := range lost {
		layout, ok := plan.Layout(j)
		if !ok {
			continue
		}
		ends, _, err := cluster.Ends(ctx, layout)
		if err != nil {
			return err
		}
		f.g.tell(j.UID, func(n *plan.News) {
			for _, m := range ends {
				if j.Spec.Array == "" {
					m.Task = ""
				}
				if !slices.Contains(n.Marks, m) {
					n.Marks = append(n.Marks, m)
				}
			}
			n.Seen, n.Vanished = byUID[string(j.UID)], true
		})
	}
	return nil
}
