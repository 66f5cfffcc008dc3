package loop

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"

	"minik8s/internal/supervise"
)

// Key is the namespace and name of what is to be reconciled.
type Key struct{ Namespace, Name string }

// String is namespace/name.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// Loop is one controller's queue and workers.
type Loop struct {
	name      string
	reconcile func(ctx context.Context, key Key) error
	queue     workqueue.TypedRateLimitingInterface[Key]
	log       *slog.Logger
	metrics   metrics
}

// New makes a loop; reconcile must be safe to run concurrently for different keys.
func New(name string, log *slog.Logger, reconcile func(ctx context.Context, key Key) error) *Loop {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[Key](5*time.Millisecond, 30*time.Second)
	m := newMetrics(name)
	plain := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[Key]{Queue: &line{metrics: m}})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[Key]{Queue: plain})
	return &Loop{name: name, reconcile: reconcile, log: log, metrics: m,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[Key]{DelayingQueue: delaying})}
}

// Add asks for a key to be reconciled.
func (l *Loop) Add(k Key) { l.queue.Add(k) }

// AddAfter asks for it after a while.
func (l *Loop) AddAfter(k Key, d time.Duration) {
	l.metrics.retries.Inc()
	l.queue.AddAfter(k, d)
}

// Panics is how many reconciles have panicked since the start of the process, by controller.
func Panics() map[string]int64 {
	out := map[string]int64{}
	panics.Range(func(name, n any) bool {
		out[name.(string)] = n.(*atomic.Int64).Load()
		return true
	})
	return out
}

// panics counts by the loop's name. It is process-wide, as the metrics are.
var panics sync.Map

func count(name string) {
	n, _ := panics.LoadOrStore(name, &atomic.Int64{})
	n.(*atomic.Int64).Add(1)
}

// Len is how many keys are queued.
func (l *Loop) Len() int { return l.queue.Len() }

// Run works with so many workers until ctx ends; then it returns nil.
func (l *Loop) Run(ctx context.Context, workers int) error {
	stop := context.AfterFunc(ctx, l.queue.ShutDown)
	defer stop()
	var wg sync.WaitGroup
	for range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for l.step(ctx) {
			}
		}()
	}
	wg.Wait()
	return nil
}

// end stops the queue and drops what waits in it.
func (l *Loop) end() {
	l.queue.ShutDown()
	for {
		key, quit := l.queue.Get()
		if quit {
			return
		}
		l.queue.Done(key)
	}
}

// warnAfter is the failure in a row of a key from which on each is logged as a warning. Those before are debug: a
// conflict with another writer is normal, and is cured by trying again.
const warnAfter = 5

func (l *Loop) step(ctx context.Context) bool {
	key, quit := l.queue.Get()
	if quit {
		return false
	}
	defer l.queue.Done(key)
	if ctx.Err() != nil {
		return true // the keys that are left are dropped
	}
	began := time.Now()
	err := l.safe(ctx, key)
	l.metrics.worked.Observe(time.Since(began).Seconds())
	if err != nil && ctx.Err() == nil {
		level := slog.LevelDebug
		failures := l.queue.NumRequeues(key) + 1
		if failures >= warnAfter {
			level = slog.LevelWarn
		}
		l.log.Log(ctx, level, "reconcile failed, it comes again", "controller", l.name, "key", key.String(), "failures", failures, "error", err)
		l.metrics.retries.Inc()
		l.queue.AddRateLimited(key)
		return true
	}
	l.queue.Forget(key)
	return true
}

func (l *Loop) safe(ctx context.Context, key Key) error {
	err := supervise.Safe(func() error { return l.reconcile(ctx, key) })
	var p *supervise.Panic
	if errors.As(err, &p) {
		l.log.Error("reconcile panicked", "controller", l.name, "key", key.String(), "panic", p.Value, "stack", p.Stack)
		count(l.name)
	}
	return err
}
