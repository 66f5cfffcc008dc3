package scheduler

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/api/placement"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/events"
	"minik8s/internal/informer"
	"minik8s/internal/scheduler/plan"
	"minik8s/internal/supervise"
)

// Name is what pods name in schedulerName.
const Name = "default-scheduler"

// Scheduler decides where pods run.
type Scheduler struct {
	client client.Interface
	views  *informer.Views
	record *events.Recorder
	log    *slog.Logger
	now    func() time.Time
	cfg    Config

	pods       *informer.Informer[*corev1.Pod]
	nodes      *informer.Informer[*corev1.Node]
	namespaces *informer.Informer[*corev1.Namespace]
	configs    *informer.Informer[*minik8s.ClusterConfig]

	// pending are events that the deciding goroutine has not applied yet.
	mu      sync.Mutex
	pending []clusterEvent
	wake    chan struct{}

	tasks  *supervise.Tasks
	writes pool

	// The fields below belong to the deciding goroutine.
	cluster  *plan.Cluster
	queue    *queue
	changes  changes
	strategy plan.Strategy
	synced   bool   // all pods that are bound are known: before that, nothing is decided
	usage    *usage // nil: the strategy does not use the nodes' measured usage
}

// Config is what a scheduler may be given beside its client.
type Config struct {
	// Usage, which may be nil, returns what nodes use, for the strategies min-cpu and min-mem: the same numbers as
	// metrics.k8s.io has. Nodes of which it is not known are missing.
	Usage func(ctx context.Context, nodes []string) map[string]Usage
}

// New makes a scheduler; Run runs it once. record may be nil.
func New(c client.Interface, views *informer.Views, record *events.Recorder, cfg Config, log *slog.Logger) *Scheduler {
	s := &Scheduler{client: c, cfg: cfg, views: views, record: record, log: log, now: clock.Now, wake: make(chan struct{}, 1),
		cluster: plan.New(uint64(time.Now().UnixNano())), queue: newQueue(), strategy: plan.Spread,
		pods:       informer.New[*corev1.Pod](c, api.Pods, informer.Options{Views: views, Log: log}),
		nodes:      informer.New[*corev1.Node](c, api.Nodes, informer.Options{Views: views, Log: log}),
		namespaces: informer.New[*corev1.Namespace](c, api.Namespaces, informer.Options{Views: views, Log: log}),
		configs:    informer.New[*minik8s.ClusterConfig](c, api.ClusterConfigs, informer.Options{Views: views, Log: log}),
	}
	s.changes.clear()
	s.pods.OnChange(func(old, now *corev1.Pod) { s.enqueue(clusterEvent{oldPod: old, pod: now}) })
	s.nodes.OnChange(func(old, now *corev1.Node) { s.enqueue(clusterEvent{oldNode: old, node: now}) })
	s.namespaces.OnChange(func(old, now *corev1.Namespace) { s.enqueue(clusterEvent{oldNamespace: old, namespace: now}) })
	s.configs.OnChange(func(old, now *minik8s.ClusterConfig) { s.enqueue(clusterEvent{oldConfig: old, config: now}) })
	return s
}

// batch is how many pods are decided before pending events are applied again.
const batch = 256

// Run decides until ctx ends; ready is called once everything there is has been read.
func (s *Scheduler) Run(ctx context.Context, ready func()) error {
	s.tasks = supervise.NewTasks(ctx)
	s.tasks.Go(s.work)
	// Pods last, so that the first decisions know the nodes, the strategy and all pods that are bound.
	s.tasks.InOrder(func() {
		s.enqueue(clusterEvent{synced: true})
		ready()
	}, s.configs, s.namespaces, s.nodes, s.pods)
	return s.tasks.Wait()
}

// work is the deciding goroutine.
func (s *Scheduler) work(ctx context.Context) error {
	defer newQueue().measure() // sets the gauges to 0: another master may schedule from now on
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		s.read(ctx)
		s.queue.release(s.now())
		s.queue.measure()
		if s.synced && s.decideSome(ctx) {
			continue
		}
		timer.Stop()
		var retryAt <-chan time.Time
		if at := s.queue.next(); !at.IsZero() {
			timer.Reset(max(0, at.Sub(s.now())))
			retryAt = timer.C
		}
		select {
		case <-s.wake:
		case <-retryAt:
		case <-ctx.Done():
		}
	}
	return nil
}

// decideSome decides a batch; false if there was nothing to decide.
func (s *Scheduler) decideSome(ctx context.Context) bool {
	for n := range batch {
		e := s.queue.pop()
		if e == nil {
			return n > 0
		}
		s.decide(ctx, e)
	}
	return true
}

// decide finds a node for one pod. The pod counts on its node from now on; the binding is written while the next pods
// are decided.
func (s *Scheduler) decide(ctx context.Context, e *entry) {
	pod, began := e.pod.Obj, time.Now()
	node, why := s.cluster.Choose(e.pod)
	if why != nil {
		unschedulable.since(began)
		s.queue.park(e, why.Causes, s.now())
		s.report(ctx, e, why)
		return
	}
	s.cluster.Place(e.pod, node)
	s.changes.placed = true
	e.place = unqueued
	s.writes.do(s.tasks, func() { s.bind(ctx, pod, node, began) })
}

// report writes to a pod's status, and in an Event, why it has no node, unless the status says so already.
func (s *Scheduler) report(ctx context.Context, e *entry, why *plan.Refusal) {
	pod := e.pod.Obj
	if e.reported == nil { // an earlier run of the scheduler may have written it
		e.reported = refusalIn(pod)
	}
	if e.reported == nil || e.reported.Text != why.Text {
		s.record.Event(pod, corev1.EventTypeWarning, "FailedScheduling", "%s", why.Text)
	} else if !e.writeFailed && maps.EqualFunc(e.reported.Nodes, why.Nodes, placement.Refused.Equal) {
		return
	}
	e.reported, e.writeFailed = why, false
	s.writes.do(s.tasks, func() { s.writeRefusal(ctx, pod, why) })
}

// refusalIn reads from a pod's status why it has no node; nil if it does not say.
func refusalIn(pod *corev1.Pod) *plan.Refusal {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse &&
			c.Reason == corev1.PodReasonUnschedulable {
			return &plan.Refusal{Text: c.Message, Nodes: placement.RefusalsOf(pod)}
		}
	}
	return nil
}
