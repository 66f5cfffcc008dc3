package gpu

import (
	"context"
	"log/slog"

	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/controller/loop"
	"minik8s/internal/gpu/results"
	"minik8s/internal/informer"
	"minik8s/internal/supervise"
)

// SweeperName is the part's name.
const SweeperName = "gpu-results"

// Sweeper removes from one master's store what belongs to no job any more.
type Sweeper struct {
	store  *results.Store
	master string
	log    *slog.Logger
	jobs   *informer.Informer[*minik8s.GpuJob]
	loop   *loop.Loop
}

// NewSweeper makes a sweeper for cfg's store; c may list GpuJobs.
func NewSweeper(c client.Interface, cfg Config) *Sweeper {
	s := &Sweeper{store: cfg.Store, master: cfg.Master, log: cfg.Log}
	s.jobs = informer.New[*minik8s.GpuJob](c, api.GpuJobs, informer.Options{Log: cfg.Log})
	s.loop = loop.New(SweeperName, cfg.Log, s.reconcile)
	s.jobs.OnChange(func(old, now *minik8s.GpuJob) {
		if old != nil && (now == nil || now.UID != old.UID) {
			s.add(string(old.UID))
		}
		if now != nil && s.elsewhere(now) && (old == nil || !s.elsewhere(old)) {
			s.add(string(now.UID))
		}
	})
	return s
}

func (s *Sweeper) add(uid string) { s.loop.Add(loop.Key{Name: uid}) }

// elsewhere reports whether another master has the results of a job.
func (s *Sweeper) elsewhere(j *minik8s.GpuJob) bool {
	return j.Status.Results != nil && j.Status.Results.Master != s.master
}

// Run works until ctx ends.
func (s *Sweeper) Run(ctx context.Context, ready func()) error {
	// What is there now is of jobs that the view shows when it is complete: of others nothing is removed.
	uids, err := s.store.UIDs()
	if err != nil {
		s.log.Warn("the results of GPU jobs cannot be listed", "error", err)
	}
	return loop.Drive(ctx, func() {
		for _, uid := range uids {
			s.add(uid)
		}
		ready()
	}, []supervise.Source{s.jobs}, s.loop.Workers(1))
}

func (s *Sweeper) reconcile(_ context.Context, key loop.Key) error {
	for _, j := range s.jobs.List() {
		switch {
		case j.UID != types.UID(key.Name):
		case s.elsewhere(j): // this master led before, and broke off
			return s.store.RemoveIncoming(key.Name)
		default:
			return nil
		}
	}
	return s.store.Remove(key.Name)
}
