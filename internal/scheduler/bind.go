package scheduler

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/scheduler/plan"
	"minik8s/internal/supervise"
)

const (
	// writers is how many writes are under way at once: as many as the store takes in one sync of its
	// log, and few enough that a slow store is not asked for more than it can do.
	writers = 64
	// writeTimeout bounds one write.
	writeTimeout = 15 * time.Second
)

// pool runs jobs in order, in at most "writers" goroutines. Handing a job over never waits, and without jobs there is
// no goroutine.
type pool struct {
	mu      sync.Mutex
	jobs    []func()
	running int
}

func (p *pool) do(tasks *supervise.Tasks, job func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.jobs = append(p.jobs, job)
	if p.running < writers {
		p.running++
		tasks.Go(p.work)
	}
}

func (p *pool) work(context.Context) error {
	for {
		p.mu.Lock()
		if len(p.jobs) == 0 {
			p.jobs = nil
			p.running--
			p.mu.Unlock()
			return nil
		}
		job := p.jobs[0]
		p.jobs[0] = nil
		p.jobs = p.jobs[1:]
		p.mu.Unlock()
		job()
	}
}

// bind writes a pod's binding. If that fails, the pod is read back and the deciding goroutine gets it: a write whose
// answer was lost may have been done. Until that is known the pod counts on its node, or another pod could be given
// its place. began is when the pod's turn came.
func (s *Scheduler) bind(ctx context.Context, pod *corev1.Pod, node string, began time.Time) {
	if ctx.Err() != nil {
		return
	}
	wctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := s.client.Bind(wctx, pod.Namespace, pod.Name, pod.UID, node)
	switch {
	case err == nil:
		scheduled.since(began)
		s.record.Event(pod, corev1.EventTypeNormal, "Scheduled", "Successfully assigned %s/%s to %s", pod.Namespace, pod.Name, node)
	case ctx.Err() != nil:
	default:
		failed.since(began)
		level := slog.LevelWarn
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) { // another write came first
			level = slog.LevelDebug
		}
		s.log.Log(ctx, level, "binding failed", "pod", pod.Namespace+"/"+pod.Name, "node", node, "error", err)
		if found, known := s.readBack(ctx, pod); known {
			s.enqueue(clusterEvent{unbound: pod, from: node, found: found})
		}
	}
}

const (
	minReadPause = 50 * time.Millisecond
	maxReadPause = 5 * time.Second
)

// readBack reads a pod, and retries until the API answers. found is nil if the pod is deleted; known is false if ctx
// has ended.
func (s *Scheduler) readBack(ctx context.Context, pod *corev1.Pod) (found *corev1.Pod, known bool) {
	key := client.Key{Kind: api.Pods, Namespace: pod.Namespace, Name: pod.Name}
	for pause := minReadPause; ; pause = min(2*pause, maxReadPause) {
		rctx, cancel := context.WithTimeout(ctx, writeTimeout)
		now, err := client.Get[*corev1.Pod](rctx, s.client, key)
		cancel()
		switch {
		case apierrors.IsNotFound(err), err == nil && now.UID != pod.UID:
			return nil, true
		case err == nil:
			return now, true
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, false
		}
	}
}

// writeRefusal writes to the pod's status why it has no node. The write is guarded by the pod's resourceVersion, so
// it fails if the pod has got a node since.
func (s *Scheduler) writeRefusal(ctx context.Context, pod *corev1.Pod, why *plan.Refusal) {
	if ctx.Err() != nil {
		return
	}
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
	c := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: why.Text, LastTransitionTime: metav1.NewTime(clock.Now()).Rfc3339Copy(), ObservedGeneration: pod.Generation}
	upd := pod.DeepCopy()
	why.Nodes.Publish(upd)
	if i >= 0 {
		if was := pod.Status.Conditions[i]; was.Status == c.Status && !was.LastTransitionTime.IsZero() {
			c.LastTransitionTime = was.LastTransitionTime
		}
		upd.Status.Conditions[i] = c
	} else {
		upd.Status.Conditions = append(upd.Status.Conditions, c)
	}
	wctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	_, err := s.client.Update(wctx, upd, client.WriteOptions{Subresource: "status"})
	if apierrors.IsInvalid(err) { // the pod's annotations are as large as the API admits
		upd = upd.DeepCopy()
		upd.Annotations = pod.Annotations
		_, err = s.client.Update(wctx, upd, client.WriteOptions{Subresource: "status"})
	}
	if err == nil || ctx.Err() != nil || apierrors.IsNotFound(err) {
		return
	}
	if !apierrors.IsConflict(err) {
		s.log.Warn("could not say on a pod why it has no node", "pod", pod.Namespace+"/"+pod.Name, "error", err)
	}
	s.enqueue(clusterEvent{unreported: pod})
}
