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

// follower follows the jobs of one place while there are any. Of the followers whose places share a connection one looks for all. Marks and
// Slurm are asked apart: a controller that is slow, or away, does not keep jobs from their ends.
type follower struct {
	g  *Controller
	at place

	mu     sync.Mutex
	done   []batch.Mark // that statuses have: to be forgotten on the cluster
	soon   bool         // Slurm is to be asked as soon as it may
	asking bool
	answer *error            // of the last question to Slurm, if there was one
	missed map[types.UID]int // how often Slurm knew nothing of a job
	// recalled are the arrays of which it is known what ended before; run's alone.
	recalled map[types.UID]bool
	// trouble is what the jobs were told.
	trouble *plan.Trouble
}

// follow makes sure that a place is followed; soon asks Slurm as soon as it may.
func (g *Controller) follow(at place, soon bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.followers[at]
	if f == nil {
		f = &follower{g: g, at: at, soon: true, missed: map[types.UID]int{}}
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

// hand gives what was said to this follower to the one that looks for it.
func (f *follower) hand(to *follower) {
	f.mu.Lock()
	done, soon := f.done, f.soon
	f.done, f.soon = nil, false
	f.mu.Unlock()
	to.forget(done)
	to.mu.Lock()
	defer to.mu.Unlock()
	to.soon = to.soon || soon
}

// active are the jobs of places that are not at their ends.
func (f *follower) active(at map[place]bool) []*minik8s.GpuJob {
	var out []*minik8s.GpuJob
	for _, j := range f.g.jobs.List() {
		if j.DeletionTimestamp == nil && j.Status.Folder != "" && at[placeOf(j)] && !plan.Ended(&j.Status) {
			out = append(out, j)
		}
	}
	return out
}

func (f *follower) run(ctx context.Context) {
	defer f.g.links.resign(f)
	tick := time.NewTicker(marksEvery)
	defer tick.Stop()
	led := false
	for idle := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		cluster, obj, err := f.g.links.For(ctx, f.at)
		lead := f
		if err == nil {
			lead = f.g.links.lead(f)
		} else {
			f.g.links.resign(f)
		}
		in := err == nil // what is said of the login; the rest is about what was asked over it
		at := map[place]bool{f.at: true}
		if err == nil && lead == f {
			at = f.g.links.sharing(f.at)
		}
		jobs := f.active(at)
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
		if lead != f {
			led = false
			f.hand(lead)
			f.tellTrouble(jobs, nil, false)
			continue
		}
		if err == nil {
			err = f.recall(ctx, cluster, jobs)
		}
		if err == nil {
			err = f.look(ctx, cluster)
		}
		if err == nil && len(jobs) > 0 && f.mayAsk(obj) {
			f.g.tasks.Go(func(ctx context.Context) error {
				f.ask(ctx, cluster, jobs)
				return nil
			})
		}
		f.tellTrouble(jobs, err, !led) // who led before may have told them of another
		led = in
		f.mu.Lock()
		answer := f.answer
		f.mu.Unlock()
		says := f.at
		if obj != nil && at[f.at.whole()] || obj != nil && at[place{f.at.namespace, f.at.cluster, obj.Spec.LoginSecret}] {
			says = f.at.whole() // it is the cluster's own login that was used, by whichever Secret
		}
		f.g.reportOf(ctx, says, err, answer)
	}
}

// tellTrouble tells the jobs why they cannot be followed, where somebody has to do something about it, and when that is over.
func (f *follower) tellTrouble(jobs []*minik8s.GpuJob, err error, again bool) {
	var now *plan.Trouble
	if p := problem(err); p != nil && p.Reason != minik8s.SlurmUnreachable {
		now = &plan.Trouble{Reason: p.Reason, Message: p.Message}
	}
	if !again && (now == f.trouble || now != nil && f.trouble != nil && *now == *f.trouble) {
		return
	}
	f.trouble = now
	for _, j := range jobs {
		f.g.tell(j.UID, func(n *plan.News) { n.Trouble = now })
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
		known := f.g.tell(types.UID(m.UID), func(n *plan.News) { n.Hear(m, time.Now()) })
		if !known { // of a job that was deleted
			drop = append(drop, m)
		}
	}
	return cluster.Forget(ctx, drop)
}

// mayAsk reports whether Slurm's controller is to be asked now, and notes that it is.
func (f *follower) mayAsk(obj *minik8s.SlurmCluster) bool {
	every := time.Duration(obj.Spec.PollSeconds) * time.Second
	if every <= 0 {
		every = 2 * queueGap
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asking || !f.g.links.asked(f.at, func(last time.Time) bool {
		since := time.Since(last)
		return since >= every || f.soon && since >= min(queueGap, every)
	}) {
		return false
	}
	f.soon, f.asking = false, true
	return true
}

const (
	// askLimit is how long Slurm may take for an answer.
	askLimit = time.Minute
	// missedLimit is how often Slurm's queue and accounting may know nothing of a job until it counts as lost: accounting is late
	// at times. unansweredLimit is the same while accounting does not answer.
	missedLimit, unansweredLimit = 3, 8
	// runawayLimit is the same of a job that accounting says to wait or to run.
	runawayLimit = 100
)

// ask asks Slurm for all jobs at once, and its accounting for those that it no longer has.
func (f *follower) ask(ctx context.Context, cluster *slurm.Cluster, jobs []*minik8s.GpuJob) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	began := time.Now()
	queue, err := cluster.Queue(ctx)
	if err == nil {
		err = f.hear(ctx, cluster, jobs, queue, began)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asking, f.answer = false, &err
}

func (f *follower) hear(ctx context.Context, cluster *slurm.Cluster, jobs []*minik8s.GpuJob, queue []batch.Seen, began time.Time) error {
	byUID := map[string][]batch.Seen{}
	for _, s := range queue {
		if uid, ok := batch.UIDOf(s.Name); ok {
			byUID[uid] = append(byUID[uid], s)
		}
	}
	var lost []*minik8s.GpuJob
	for _, j := range jobs {
		seen := byUID[string(j.UID)]
		if j.Status.JobID != "" { // another one of its name was submitted too late, and is none of it
			seen = slices.DeleteFunc(seen, func(s batch.Seen) bool { return s.ID != j.Status.JobID })
		}
		switch {
		case len(seen) > 0:
			delete(f.missed, j.UID)
			if j.Spec.Array == "" && j.Status.ExitCode == nil && batch.Ended(seen[len(seen)-1].State) {
				// squeue does not say the exit code, and the mark that does has not come.
				if err := f.ends(ctx, cluster, j); err != nil {
					return err
				}
			}
			f.g.tell(j.UID, func(n *plan.News) { n.See(seen, began) })
		case j.Status.JobID != "" && j.Status.SubmitTime != nil && j.Status.SubmitTime.Add(settled).Before(began):
			lost = append(lost, j)
		}
	}
	return f.trace(ctx, cluster, lost)
}

// recall reads, once, what the tasks of arrays that were under way before this controller began have left: their marks are gone, and
// Slurm forgets them after some minutes, so they would be counted as not begun.
func (f *follower) recall(ctx context.Context, cluster *slurm.Cluster, jobs []*minik8s.GpuJob) error {
	known := map[types.UID]bool{}
	for _, j := range jobs {
		if j.Spec.Array == "" || j.Status.JobID == "" {
			continue
		}
		if !f.recalled[j.UID] {
			if err := f.ends(ctx, cluster, j); err != nil {
				return err
			}
		}
		known[j.UID] = true
	}
	f.recalled = known
	return nil
}

// ends reads what a job left in its folder when it ended.
func (f *follower) ends(ctx context.Context, cluster *slurm.Cluster, j *minik8s.GpuJob) error {
	layout, ok := plan.Layout(j)
	if !ok {
		return nil
	}
	ends, _, err := cluster.Ends(ctx, layout)
	if err != nil {
		return err
	}
	f.g.tell(j.UID, func(n *plan.News) {
		n.Incomplete = false
		for _, m := range ends {
			if j.Spec.Array == "" {
				m.Task = ""
			}
			n.Hear(m, time.Now())
		}
	})
	return nil
}

// trace finds out how jobs ended that Slurm's queue no longer has: by what they left, and by Slurm's accounting.
func (f *follower) trace(ctx context.Context, cluster *slurm.Cluster, lost []*minik8s.GpuJob) error {
	if len(lost) == 0 {
		return nil
	}
	ids := make([]string, len(lost))
	for i, j := range lost {
		ids[i] = j.Status.JobID
		if err := f.ends(ctx, cluster, j); err != nil {
			return err
		}
	}
	limit := missedLimit
	account, err := cluster.Account(ctx, ids)
	if err != nil {
		limit = unansweredLimit
	}
	byUID, over, lives := map[string][]batch.Seen{}, map[string]bool{}, map[string]bool{}
	for _, s := range account {
		if uid, ok := batch.UIDOf(s.Name); ok {
			over[uid] = batch.Ended(s.State)
			lives[uid] = lives[uid] || !over[uid]
			if over[uid] {
				byUID[uid] = append(byUID[uid], s)
			}
		}
	}
	for _, j := range lost {
		uid := string(j.UID)
		most := limit
		if lives[uid] { // accounting says that it waits or runs: so it does, or Slurm has lost it
			most = runawayLimit
		}
		if f.missed[j.UID]++; !over[uid] && f.missed[j.UID] < most {
			f.mu.Lock()
			f.soon = true
			f.mu.Unlock()
			continue
		}
		delete(f.missed, j.UID)
		f.g.tell(j.UID, func(n *plan.News) { n.Seen, n.Vanished = byUID[uid], true })
	}
	return err
}
