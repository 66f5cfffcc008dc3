package apiserver

import (
	"fmt"
	"net/http"
	"net/http/pprof"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"minik8s/internal/registry"
	"minik8s/internal/supervise"
)

// health serves /healthz and /livez (the API answers), and /readyz (every part is up).
func (s *Server) health(c echo.Context) error {
	path := c.Request().URL.Path
	_, verbose := c.QueryParams()["verbose"]
	ready := !strings.HasPrefix(path, "/readyz") || s.cfg.Ready == nil || s.cfg.Ready()
	code := http.StatusOK
	if !ready {
		code = http.StatusServiceUnavailable
	}
	if !verbose && ready {
		return c.String(code, "ok")
	}
	var b strings.Builder
	if s.cfg.Parts != nil {
		for _, p := range s.cfg.Parts() {
			mark, rest := "+", "ok"
			if !p.Ready {
				mark, rest = "-", "not ready"
			}
			if p.LastErr != "" {
				rest += ": " + p.LastErr
			}
			if p.Restarts > 0 {
				rest += fmt.Sprintf(" (restarted %d times)", p.Restarts)
			}
			fmt.Fprintf(&b, "[%s]%s %s\n", mark, p.Name, rest)
		}
	}
	word := "passed"
	if !ready {
		word = "failed"
	}
	fmt.Fprintf(&b, "%s check %s\n", strings.Trim(strings.SplitN(path, "/", 3)[1], "/"), word)
	return c.String(code, b.String())
}

// metrics are the API's own numbers.
type metrics struct {
	reg      *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	watches  prometheus.Gauge
	once     sync.Once
	handler  http.Handler
}

func newMetrics() *metrics {
	m := &metrics{
		reg: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "minik8s_api_requests_total",
			Help: "Requests by method and status code."}, []string{"method", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "minik8s_api_request_seconds",
			Help: "Time of requests that are not watches or logs.", Buckets: prometheus.ExponentialBuckets(0.0002, 3, 10)}, []string{"method"}),
		watches: prometheus.NewGauge(prometheus.GaugeOpts{Name: "minik8s_api_watches", Help: "Open watches."}),
	}
	m.reg.MustRegister(m.requests, m.seconds, m.watches)
	return m
}

// codes are the status codes as labels, allocated once.
var codes = map[int]string{200: "200", 201: "201", 400: "400", 401: "401", 403: "403", 404: "404", 409: "409", 410: "410", 422: "422", 500: "500"}

func (m *metrics) observe(c echo.Context, took time.Duration) {
	method, code := c.Request().Method, c.Response().Status
	label, ok := codes[code]
	if !ok {
		label = fmt.Sprint(code)
	}
	switch method {
	case "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS":
	default:
		method = "other" // so that clients cannot create new labels
	}
	m.requests.WithLabelValues(method, label).Inc()
	if took < time.Minute && !isWatch(c) {
		m.seconds.WithLabelValues(method).Observe(took.Seconds())
	}
}

func isWatch(c echo.Context) bool {
	w := c.QueryParam("watch")
	return w == "true" || w == "1"
}

func (s *Server) serveMetrics(c echo.Context) error {
	s.metrics.once.Do(func() {
		all := prometheus.Gatherers{s.cfg.Metrics, s.metrics.reg}
		s.metrics.handler = promhttp.HandlerFor(all, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
	})
	s.metrics.handler.ServeHTTP(c.Response(), c.Request())
	return nil
}

// profile serves Go's own profiler, for root and the admin: CPU and memory use.
func (s *Server) profile(c echo.Context) error {
	switch name := c.Param("*"); name {
	case "profile":
		pprof.Profile(c.Response(), c.Request())
	case "trace":
		pprof.Trace(c.Response(), c.Request())
	default:
		pprof.Handler(name).ServeHTTP(c.Response(), c.Request())
	}
	return nil
}

// partsCollector reads the state of the parts only when metrics are requested.
type partsCollector struct {
	parts  func() []supervise.State
	panics func() map[string]int64
	reg    *registry.Registry
}

var (
	partReady    = prometheus.NewDesc("minik8s_part_ready", "1 if the part is ready.", []string{"part"}, nil)
	partRestarts = prometheus.NewDesc("minik8s_part_restarts_total", "How often the part was started again.", []string{"part"}, nil)
	partPanics   = prometheus.NewDesc("minik8s_controller_panics_total", "Reconciles that panicked and were tried again.", []string{"controller"}, nil)
	objectCount  = prometheus.NewDesc("minik8s_objects", "Objects stored, by kind.", []string{"kind"}, nil)
)

// Describe implements prometheus.Collector.
func (p partsCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- partReady
	ch <- partRestarts
	ch <- objectCount
	ch <- partPanics
}

// Collect implements prometheus.Collector.
func (p partsCollector) Collect(ch chan<- prometheus.Metric) {
	if p.parts != nil {
		for _, st := range p.parts() {
			up := 0.0
			if st.Ready {
				up = 1
			}
			ch <- prometheus.MustNewConstMetric(partReady, prometheus.GaugeValue, up, st.Name)
			ch <- prometheus.MustNewConstMetric(partRestarts, prometheus.CounterValue, float64(st.Restarts), st.Name)
		}
	}
	if p.panics != nil {
		for name, n := range p.panics() {
			ch <- prometheus.MustNewConstMetric(partPanics, prometheus.CounterValue, float64(n), name)
		}
	}
	for _, k := range p.reg.Kinds().Stored() {
		ch <- prometheus.MustNewConstMetric(objectCount, prometheus.GaugeValue, float64(p.reg.Count(k)), k.String())
	}
}
