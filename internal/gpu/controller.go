package gpu

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/controller/loop"
	"minik8s/internal/events"
	"minik8s/internal/gpu/plan"
	"minik8s/internal/gpu/results"
	"minik8s/internal/informer"
	"minik8s/internal/slurm/batch"
	"minik8s/internal/supervise"
)

// ControllerName is the part's name.
const ControllerName = "gpu-controller"

// How many jobs are worked at, of one cluster and of all, and for how many results come: what they wait for is the network.
const (
	perCluster = 8
	workers    = 4 * perCluster
	transfers  = 2 // of one cluster
)

// Controller runs GpuJobs.
type Controller struct {
	client   client.Interface
	record   *events.Recorder
	links    *Links
	store    *results.Store
	master   string
	log      *slog.Logger
	jobs     *informer.Informer[*minik8s.GpuJob]
	clusters *informer.Informer[*minik8s.SlurmCluster]
	loop     *loop.Loop
	tasks    *supervise.Tasks // of this Run

	mu         sync.Mutex
	keys       map[types.UID]loop.Key
	waiting    map[loop.Key]map[loop.Key]bool // the jobs that depend on a job
	news       map[types.UID]*plan.News
	followers  map[place]*follower
	begun      map[types.UID]time.Time // when a job's start was last asked for that is under way on its login node
	collecting map[types.UID]*collection
	sending    map[place]chan struct{} // bounds how many collect at a time from a cluster
	turns      *turns
}

// Config is what a Controller needs beside its client.
type Config struct {
	Links  *Links
	Store  *results.Store
	Master string // this machine's name, as the other masters know it
	// Leader is the name of the master that runs the Controller, or "" while there is none; nil: it is this one.
	Leader func(ctx context.Context) (string, error)
	// Others asks another master by its name; nil: there are none.
	Others func(ctx context.Context, master string) (Asker, error)
	Log    *slog.Logger
}

// NewController makes the controller.
func NewController(c client.Interface, views *informer.Views, record *events.Recorder, cfg Config) *Controller {
	opts := informer.Options{Views: views, Log: cfg.Log}
	g := &Controller{client: c, record: record, links: cfg.Links, store: cfg.Store, master: cfg.Master, log: cfg.Log,
		jobs:     informer.New[*minik8s.GpuJob](c, api.GpuJobs, opts),
		clusters: informer.New[*minik8s.SlurmCluster](c, api.SlurmClusters, opts),
		keys:     map[types.UID]loop.Key{}, waiting: map[loop.Key]map[loop.Key]bool{}, news: map[types.UID]*plan.News{},
		followers: map[place]*follower{}, begun: map[types.UID]time.Time{}, collecting: map[types.UID]*collection{}, sending: map[place]chan struct{}{}, turns: newTurns(perCluster)}
	g.loop = loop.New("gpujob", cfg.Log, g.reconcile)
	g.jobs.OnChange(g.jobChanged)
	g.clusters.OnChange(func(old, now *minik8s.SlurmCluster) {
		if now == nil || old != nil && apiequality.Semantic.DeepEqual(old.Spec, now.Spec) && (connected(old) || !connected(now)) {
			return // nothing that a job may wait for has happened
		}
		for _, j := range g.jobs.List() {
			if j.Namespace == now.Namespace && !plan.Ended(&j.Status) {
				g.loop.Add(keyOf(j))
			}
		}
	})
	return g
}

func keyOf(j *minik8s.GpuJob) loop.Key { return loop.Key{Namespace: j.Namespace, Name: j.Name} }

// Run works until ctx ends. What is under way on login nodes then goes on there, and is found again.
func (g *Controller) Run(ctx context.Context, ready func()) error {
	g.tasks = supervise.NewTasks(ctx)
	g.tasks.Go(func(ctx context.Context) error {
		return loop.Drive(ctx, ready, []supervise.Source{g.clusters, g.jobs}, g.loop.Workers(workers))
	})
	return g.tasks.Wait()
}

func (g *Controller) jobChanged(old, now *minik8s.GpuJob) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if old != nil {
		for _, d := range old.Spec.DependsOn {
			delete(g.waiting[loop.Key{Namespace: old.Namespace, Name: d.Name}], keyOf(old))
		}
		if now == nil || now.UID != old.UID {
			delete(g.keys, old.UID)
			delete(g.news, old.UID)
			delete(g.begun, old.UID)
			if c := g.collecting[old.UID]; c != nil {
				c.cancel()
				delete(g.collecting, old.UID)
			}
		}
	}
	at := keyOf(cmp.Or(now, old))
	if now != nil {
		g.keys[now.UID] = at
		for _, d := range now.Spec.DependsOn {
			first := loop.Key{Namespace: now.Namespace, Name: d.Name}
			if g.waiting[first] == nil {
				g.waiting[first] = map[loop.Key]bool{}
			}
			g.waiting[first][at] = true
		}
		g.loop.Add(at)
	}
	if now == nil || old == nil || old.Status.JobID != now.Status.JobID || old.Status.State != now.Status.State {
		for k := range g.waiting[at] {
			g.loop.Add(k)
		}
	}
	if len(g.waiting[at]) == 0 {
		delete(g.waiting, at)
	}
}

// tell adds news of a job and has it reconciled. It reports whether there is such a job.
func (g *Controller) tell(uid types.UID, add func(*plan.News)) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	key, ok := g.keys[uid]
	if !ok {
		return false
	}
	n := g.news[uid]
	if n == nil {
		n = &plan.News{Tasks: map[string]plan.Task{}, Incomplete: true}
		g.news[uid] = n
	}
	add(n)
	g.loop.Add(key)
	return true
}

// heard is a copy of the news of a job.
func (g *Controller) heard(uid types.UID) *plan.News {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.news[uid]
	if n == nil {
		return &plan.News{Tasks: map[string]plan.Task{}, Incomplete: true}
	}
	return &plan.News{Marks: slices.Clone(n.Marks), Seen: slices.Clone(n.Seen), Vanished: n.Vanished, Tasks: maps.Clone(n.Tasks), Heard: n.Heard, Trouble: n.Trouble, Incomplete: n.Incomplete}
}

// written drops the news that a status now has. Marks are forgotten on the cluster, too.
func (g *Controller) written(obj *minik8s.GpuJob, had *plan.News) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.news[obj.UID]
	if n == nil {
		return
	}
	n.Marks = slices.DeleteFunc(n.Marks, func(m batch.Mark) bool { return slices.Contains(had.Marks, m) })
	n.Tasks = had.Tasks
	if n.Vanished == had.Vanished && reflect.DeepEqual(n.Seen, had.Seen) {
		n.Vanished = false
		if obj.Spec.Array == "" {
			n.Seen = nil
		}
	}
	if f := g.followers[placeOf(obj)]; f != nil {
		f.forget(had.Marks)
	}
	if plan.Ended(&obj.Status) {
		delete(g.news, obj.UID)
	}
}

func placeOf(obj *minik8s.GpuJob) place {
	return place{obj.Namespace, obj.Status.Cluster, obj.Spec.LoginSecret}
}

// whereTo is a job's cluster, also of one for which it is not written down yet.
func (g *Controller) whereTo(ctx context.Context, obj *minik8s.GpuJob) place {
	at := placeOf(obj)
	if at.cluster == "" {
		at.cluster, _ = g.links.choose(ctx, obj) // submit says what is wrong
	}
	return at
}

func (g *Controller) reconcile(ctx context.Context, key loop.Key) error {
	obj, ok := g.jobs.Get(key.Namespace, key.Name)
	if !ok {
		return nil
	}
	at := g.whereTo(ctx, obj).whole()
	if !g.turns.take(at, key) {
		return nil // it comes when it is its turn
	}
	defer func() {
		for _, next := range g.turns.leave(at) {
			g.loop.Add(next)
		}
	}()
	if obj.DeletionTimestamp != nil {
		return g.remove(ctx, obj)
	}
	if !slices.Contains(obj.Finalizers, minik8s.GpuJobFinalizer) {
		if plan.Ended(&obj.Status) {
			return nil // somebody took it away: nothing is left to look after
		}
		upd := obj.DeepCopy()
		upd.Finalizers = append(upd.Finalizers, minik8s.GpuJobFinalizer)
		_, err := g.client.Update(ctx, upd, client.WriteOptions{})
		return gone(err)
	}
	n := g.heard(obj.UID)
	upd := obj.DeepCopy()
	plan.Fold(upd, n, clock.Now())
	var after error
	switch {
	case plan.Ended(&upd.Status):
		after = g.finish(ctx, upd)
	case upd.Status.JobID == "":
		after = g.begin(ctx, upd)
		if n2 := g.heard(obj.UID); len(n2.Marks) > len(n.Marks) { // what begin has heard
			n = n2
			plan.Fold(upd, n, clock.Now())
		}
	}
	if upd.Status.Folder != "" && !plan.Ended(&upd.Status) {
		g.follow(placeOf(upd), plan.Doubtful(&upd.Status, n) || upd.Status.JobID != obj.Status.JobID)
	}
	if err := g.write(ctx, obj, upd); err != nil {
		return err
	}
	g.written(upd, n)
	return after
}

// write writes a status that has changed, and says what happened.
func (g *Controller) write(ctx context.Context, old, now *minik8s.GpuJob) error {
	if apiequality.Semantic.DeepEqual(old.Status, now.Status) {
		return nil
	}
	stored, err := g.client.Update(ctx, now, client.WriteOptions{Subresource: api.StatusSubresource})
	if err != nil {
		return gone(err)
	}
	now.ResourceVersion = stored.GetResourceVersion()
	for _, kind := range []string{minik8s.GpuJobSubmitted, minik8s.GpuJobComplete, minik8s.GpuJobFailed, minik8s.GpuJobResultsReady} {
		was, is := apimeta.FindStatusCondition(old.Status.Conditions, kind), apimeta.FindStatusCondition(now.Status.Conditions, kind)
		if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
			continue
		}
		level := corev1.EventTypeNormal
		if (is.Status == metav1.ConditionTrue) == (kind == minik8s.GpuJobFailed) {
			level = corev1.EventTypeWarning
		}
		g.record.Event(old, level, is.Reason, "%s", orWord(is.Message, kind))
	}
	return nil
}

func orWord(message, kind string) string {
	if message != "" {
		return message
	}
	return map[string]string{minik8s.GpuJobComplete: "the job is done", minik8s.GpuJobResultsReady: "the results are here"}[kind]
}

func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// remove cancels a job that is deleted, and removes what it has on the cluster and here.
func (g *Controller) remove(ctx context.Context, obj *minik8s.GpuJob) error {
	if !slices.Contains(obj.Finalizers, minik8s.GpuJobFinalizer) {
		return nil
	}
	g.mu.Lock()
	if c := g.collecting[obj.UID]; c != nil {
		c.cancel()
	}
	g.mu.Unlock()
	if layout, ok := plan.Layout(obj); ok {
		cluster, _, err := g.links.For(ctx, placeOf(obj))
		var p *Problem
		if errors.As(err, &p) {
			if cluster = g.links.standing(placeOf(obj)); cluster != nil {
				err = nil
			}
		}
		switch {
		case errors.As(err, &p):
			// Without the cluster's object or the login there is no way there any more.
			g.record.Event(obj, corev1.EventTypeWarning, "LeftBehind", "%s: what is at %s on the cluster stays there", p.Message, obj.Status.Folder)
		case err != nil:
			return err
		default:
			if !plan.Ended(&obj.Status) {
				err = cluster.Cancel(ctx, layout)
			}
			if err == nil {
				err = cluster.Remove(ctx, layout)
			}
			if err != nil {
				g.record.Event(obj, corev1.EventTypeWarning, "DeletionWaits", "the job's end and folder on the cluster cannot be seen to: %s. Mend the login, "+
					"or delete SlurmCluster %s (what is on it stays there), or take away the finalizer %s", problem(err).Message, obj.Status.Cluster, minik8s.GpuJobFinalizer)
				g.loop.AddAfter(keyOf(obj), retryAfter)
				return nil
			}
		}
	}
	if err := g.store.Remove(string(obj.UID)); err != nil {
		return err
	}
	upd := obj.DeepCopy()
	upd.Finalizers = slices.DeleteFunc(upd.Finalizers, func(f string) bool { return f == minik8s.GpuJobFinalizer })
	_, err := g.client.Update(ctx, upd, client.WriteOptions{})
	return gone(err)
}

// retryAfter is the time between attempts at what a cluster does not let us do at the moment.
const retryAfter = 15 * time.Second
