package function

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"minik8s/internal/aggregation"
	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/controller/loop"
)

// The metrics of calls, under Knative's names where it has such (https://knative.dev/docs/serving/observability/metrics/serving-metrics/);
// service_name is the function. The counts are the process's: they go on when this master leads again. A function has some once it is
// called, and none after its deletion.
var (
	requests = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "activator_request_count",
		Help: "Calls that have ended."}, []string{"namespace_name", "service_name", "response_code", "response_code_class"})
	latencies = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "activator_request_latencies",
		Help: "How long calls took in milliseconds, their wait for an instance included.", Buckets: []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 6e4}}, ofFunction)
	coldStarts = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "minik8s_function_cold_starts_total",
		Help: "Calls that waited for an instance to start."}, ofFunction)

	ofFunction = []string{"namespace_name", "service_name"}

	concurrency = gauge("activator_request_concurrency", "Calls under way, those that wait included.")
	waitingNow  = gauge("minik8s_function_waiting", "Calls that wait for an instance with room.")
	desiredPods = gauge("autoscaler_desired_pods", "How many instances the load asks for.")
	actualPods  = gauge("autoscaler_actual_pods", "How many instances take calls.")
	panicMode   = gauge("autoscaler_panic_mode", "1 while a burst counts, and no instance goes.")
	targetCalls = gauge("autoscaler_target_concurrency_per_pod", "How many calls an instance is to have.")
)

func gauge(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, ofFunction, nil)
}

// stats are the calls of one function since this master leads.
type stats struct {
	calls, errors, cold int64
	took                []time.Duration // of the last calls
	next                int
	desired             int32
}

// maxTook is of how many calls percentiles are made.
const maxTook = 1024

// ended counts a call of a function.
func (p *pool) ended(key loop.Key, r result, took time.Duration) {
	p.mu.Lock()
	gone := errors.Is(p.why, errGone)
	p.mu.Unlock()
	if gone {
		return // or what was forgotten would be there again
	}
	class := strconv.Itoa(r.status/100) + "xx"
	requests.WithLabelValues(key.Namespace, key.Name, strconv.Itoa(r.status), class).Inc()
	latencies.WithLabelValues(key.Namespace, key.Name).Observe(float64(took.Microseconds()) / 1e3)
	if r.cold {
		coldStarts.WithLabelValues(key.Namespace, key.Name).Inc()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.stats
	s.calls++
	if r.fault != "" {
		s.errors++
	}
	if r.cold {
		s.cold++
	}
	if len(s.took) < maxTook {
		s.took = append(s.took, took)
		return
	}
	s.took[s.next] = took
	s.next = (s.next + 1) % maxTook
}

// forgetMetrics drops what is counted of a function that is gone.
func forgetMetrics(key loop.Key) {
	labels := prometheus.Labels{"namespace_name": key.Namespace, "service_name": key.Name}
	requests.DeletePartialMatch(labels)
	latencies.DeletePartialMatch(labels)
	coldStarts.DeletePartialMatch(labels)
}

// load is what is known of a function's calls at this moment.
func (p *pool) load() minik8s.FunctionLoad {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.stats
	l := minik8s.FunctionLoad{Calls: s.calls, Errors: s.errors, ColdStarts: s.cold, UnderWay: int32(p.calls), Waiting: int32(len(p.waiting)),
		Instances: int32(len(p.instances)), ReadyInstances: int32(p.open()), DesiredInstances: s.desired, Panicking: p.scaler.Panicking()}
	if len(s.took) > 0 {
		all := slices.Clone(s.took)
		slices.Sort(all)
		at := func(part float64) float64 {
			return float64(all[min(len(all)-1, int(part*float64(len(all))))].Microseconds()) / 1e3
		}
		l.P50Millis, l.P99Millis = at(0.5), at(0.99)
	}
	if p.fn != nil {
		l.Target = p.fn.Spec.TargetConcurrency
	}
	return l
}

// Describe implements prometheus.Collector.
func (s *Server) Describe(ch chan<- *prometheus.Desc) {
	requests.Describe(ch)
	latencies.Describe(ch)
	coldStarts.Describe(ch)
	for _, d := range []*prometheus.Desc{concurrency, waitingNow, desiredPods, actualPods, panicMode, targetCalls} {
		ch <- d
	}
}

// Collect implements prometheus.Collector: what is under way now is read when somebody asks.
func (s *Server) Collect(ch chan<- prometheus.Metric) {
	requests.Collect(ch)
	latencies.Collect(ch)
	coldStarts.Collect(ch)
	s.mu.Lock()
	d := s.dispatch
	s.mu.Unlock()
	if d == nil {
		return
	}
	d.mu.Lock()
	pools := make(map[loop.Key]*pool, len(d.pools))
	for key, p := range d.pools {
		pools[key] = p
	}
	d.mu.Unlock()
	for key, p := range pools {
		l := p.load()
		if l.Calls == 0 && l.UnderWay == 0 && l.Instances == 0 {
			continue // at rest
		}
		panicking := 0.0
		if l.Panicking {
			panicking = 1
		}
		for _, x := range []struct {
			what  *prometheus.Desc
			value float64
		}{{concurrency, float64(l.UnderWay)}, {waitingNow, float64(l.Waiting)}, {desiredPods, float64(l.DesiredInstances)},
			{actualPods, float64(l.ReadyInstances)}, {panicMode, panicking}, {targetCalls, float64(l.Target)}} {
			ch <- prometheus.MustNewConstMetric(x.what, prometheus.GaugeValue, x.value, key.Namespace, key.Name)
		}
	}
}

// load answers functions/NAME/load: what the leading master knows of the function's calls.
func (s *Server) load(w http.ResponseWriter, r *aggregation.Connected) error {
	return s.known(w, r, minik8s.FunctionLoadSubresource, func(d *dispatcher) any {
		var l minik8s.FunctionLoad
		if p := d.pool(loop.Key{Namespace: r.Namespace, Name: r.Name}); p != nil {
			l = p.load()
		}
		return l
	})
}

// calls answers functions/NAME/calls: how its last calls went.
func (s *Server) calls(w http.ResponseWriter, r *aggregation.Connected) error {
	return s.known(w, r, minik8s.FunctionCallsSubresource, func(*dispatcher) any { return s.last.list(loop.Key{Namespace: r.Namespace, Name: r.Name}) })
}

// known answers a subresource of a Function with what the leading master knows.
func (s *Server) known(w http.ResponseWriter, r *aggregation.Connected, sub string, what func(*dispatcher) any) error {
	d, passed, err := s.lead(w, r, api.Functions, sub)
	if passed || err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(what(d))
}

// lead is the dispatcher if this master leads; otherwise it has the one that does answer. That asks as an administrator, so the path is made
// anew, and not the one that the client has sent.
func (s *Server) lead(w http.ResponseWriter, r *aggregation.Connected, kind *api.Kind, sub string) (d *dispatcher, passed bool, err error) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	d, leader, err := s.here(ctx, r.Query.Has(forwardedBy))
	if err != nil || d != nil {
		return d, false, err
	}
	_, err = s.pass(ctx, ctx, w, leader, http.MethodGet, pathOf(kind, loop.Key{Namespace: r.Namespace, Name: r.Name}, sub), url.Values{}, http.Header{}, nil)
	return nil, true, err
}
