package scheduler

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The scheduler's metrics, under the names that Kubernetes gives them. The deciding goroutine reads the clock once
// for a pod that it places; everything else is counted where the binding is written. They are the
// process's, not a Scheduler's: the part is made anew whenever this master leads again, and the counts go on.
var (
	pending = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "scheduler_pending_pods",
		Help: "Number of pending pods, by the queue type: active, those to be decided; backoff, those that rest first; unschedulable, those that fit nowhere until something changes."},
		[]string{"queue"})
	attempts = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "scheduler_schedule_attempts_total",
		Help: "Number of attempts to schedule pods, by the result: unschedulable means that no node would do, error that a binding could not be written."},
		[]string{"result"})
	durations = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "scheduler_scheduling_attempt_duration_seconds",
		Help: "Scheduling attempt latency in seconds: the decision and the binding.", Buckets: prometheus.ExponentialBuckets(0.001, 4, 7)},
		[]string{"result"})

	pendingActive  = pending.WithLabelValues("active")
	pendingResting = pending.WithLabelValues("backoff")
	pendingParked  = pending.WithLabelValues("unschedulable")

	scheduled     = newResult("scheduled")
	unschedulable = newResult("unschedulable")
	failed        = newResult("error")
)

// Metrics returns the scheduler's metrics, to be registered.
func Metrics() []prometheus.Collector { return []prometheus.Collector{pending, attempts, durations} }

// result is one way in which an attempt ends.
type result struct {
	attempts prometheus.Counter
	took     prometheus.Observer
}

func newResult(name string) result {
	return result{attempts.WithLabelValues(name), durations.WithLabelValues(name)}
}

// since counts an attempt that began at this time and ends now.
func (r result) since(began time.Time) {
	r.attempts.Inc()
	r.took.Observe(time.Since(began).Seconds())
}

// measure sets the gauges of how many pods are in each place of the queue.
func (q *queue) measure() {
	pendingActive.Set(float64(len(q.active)))
	pendingResting.Set(float64(len(q.backingOff)))
	pendingParked.Set(float64(len(q.parked)))
}
