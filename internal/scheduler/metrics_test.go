package scheduler

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// numbers are the scheduler's metrics as "name/label"; of a histogram, how often something was observed.
func numbers(t *testing.T) map[string]float64 {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(Metrics()...)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				out[f.GetName()+"/"+l.GetValue()] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return out
}

func TestMetrics(t *testing.T) {
	before := numbers(t)
	var calls atomic.Int32
	c := start(t, func(call func() error) error {
		if calls.Add(1) == 1 {
			return errors.New("not the first time")
		}
		return call()
	})
	c.node("n1", "2")
	c.create(podOf("small", "1"))
	c.create(podOf("big", "9"))
	c.bound(15*time.Second, "small")
	c.eventually(15*time.Second, func() string {
		now := numbers(t)
		for name, least := range map[string]float64{"scheduled": 1, "error": 1, "unschedulable": 1} {
			for _, metric := range []string{"scheduler_schedule_attempts_total/", "scheduler_scheduling_attempt_duration_seconds/"} {
				if got := now[metric+name] - before[metric+name]; got < least {
					return fmt.Sprintf("%s%s rose by %v", metric, name, got)
				}
			}
		}
		if a, r, p := now["scheduler_pending_pods/active"], now["scheduler_pending_pods/backoff"], now["scheduler_pending_pods/unschedulable"]; a != 0 || r != 0 || p != 1 {
			return fmt.Sprintf("%v active, %v in back-off, %v parked", a, r, p)
		}
		return ""
	})
}
