package loop

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The metrics of all loops of the process, under the names that Kubernetes gives them. They are the
// process's, not a Loop's: a controller is made anew whenever this master leads again, and the counts go on.
var (
	depth = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "workqueue_depth",
		Help: "Current depth of workqueue."}, byName)
	adds = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "workqueue_adds_total",
		Help: "Total number of adds handled by workqueue."}, byName)
	retries = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "workqueue_retries_total",
		Help: "Total number of keys that were asked for again after a while, because they failed or because it was not time yet."}, byName)
	waited = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "workqueue_queue_duration_seconds",
		Help: "How long in seconds an item stays in workqueue before being requested.", Buckets: buckets}, byName)
	worked = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "workqueue_work_duration_seconds",
		Help: "How long in seconds processing an item from workqueue takes.", Buckets: buckets}, byName)

	byName = []string{"name"}
	// buckets are every power of ten from 10 µs to 10 s, which are among Kubernetes' own.
	buckets = prometheus.ExponentialBuckets(1e-5, 10, 7)
)

// Metrics returns the metrics of all loops, to be registered.
func Metrics() []prometheus.Collector {
	return []prometheus.Collector{depth, adds, retries, waited, worked}
}

// metrics are those of one loop. A new loop of the same name, made when its part is restarted, continues the counts.
type metrics struct {
	depth          prometheus.Gauge
	adds, retries  prometheus.Counter
	waited, worked prometheus.Observer
}

func newMetrics(name string) metrics {
	return metrics{depth: depth.WithLabelValues(name), adds: adds.WithLabelValues(name), retries: retries.WithLabelValues(name),
		waited: waited.WithLabelValues(name), worked: worked.WithLabelValues(name)}
}

// line is the order of the queued keys, first in first out, and measures them. The work queue calls it with its lock
// held. The work queue's own metrics are not used because they wake every loop twice a second.
type line struct {
	metrics
	keys []waiting
}

type waiting struct {
	key   Key
	since time.Time
}

// Touch implements workqueue.Queue: a key that is asked for again keeps its place.
func (l *line) Touch(Key) {}

// Push implements workqueue.Queue.
func (l *line) Push(k Key) {
	l.adds.Inc()
	l.depth.Inc()
	l.keys = append(l.keys, waiting{k, time.Now()})
}

// Len implements workqueue.Queue.
func (l *line) Len() int { return len(l.keys) }

// Pop implements workqueue.Queue; there must be a key.
func (l *line) Pop() Key {
	w := l.keys[0]
	l.keys[0] = waiting{} // the array is kept, so release the key's strings
	l.keys = l.keys[1:]
	l.depth.Dec()
	l.waited.Observe(time.Since(w.since).Seconds())
	return w.key
}
