package loop_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"minik8s/internal/controller/loop"
)

// A key is never worked on twice at once, and what is added meanwhile is not lost.
func TestOneKeyAtATime(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var inside, runs atomic.Int32
	done := make(chan struct{})
	const keys = 4
	var mu sync.Mutex
	busy := map[loop.Key]bool{}
	l := loop.New("test", slog.New(slog.DiscardHandler), func(_ context.Context, k loop.Key) error {
		mu.Lock()
		if busy[k] {
			t.Error("a key is worked on twice at once")
		}
		busy[k] = true
		mu.Unlock()
		inside.Add(1)
		defer func() {
			mu.Lock()
			busy[k] = false
			mu.Unlock()
			if inside.Add(-1) == 0 && runs.Add(1) >= 50 {
				select {
				case <-done:
				default:
					close(done)
				}
			}
		}()
		return nil
	})
	ended := make(chan struct{})
	go func() { defer close(ended); l.Run(ctx, 8) }()
	go func() {
		for i := 0; ctx.Err() == nil; i++ {
			l.Add(loop.Key{Name: string(rune('a' + i%keys))})
		}
	}()
	select {
	case <-done:
	case <-ctx.Done():
		t.Fatal("too few runs")
	}
	cancel()
	<-ended
}

// A failure and a panic come again, the panic is counted, and other keys go on.
func TestFailuresComeAgain(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var tries atomic.Int32
	before := loop.Panics()["shaky"]
	done := make(chan struct{})
	l := loop.New("shaky", slog.New(slog.DiscardHandler), func(_ context.Context, k loop.Key) error {
		switch tries.Add(1) {
		case 1:
			return errors.New("no")
		case 2:
			panic("no!")
		case 3:
			close(done)
		}
		return nil
	})
	go l.Run(ctx, 2)
	l.Add(loop.Key{Namespace: "n", Name: "x"})
	select {
	case <-done:
	case <-ctx.Done():
		t.Fatal("it did not come again")
	}
	if loop.Panics()["shaky"] != before+1 {
		t.Errorf("counted %v", loop.Panics())
	}
}

// The metrics say what a loop did, under Kubernetes' names.
func TestMetrics(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var tries atomic.Int32
	l := loop.New("measured", slog.New(slog.DiscardHandler), func(context.Context, loop.Key) error {
		if tries.Add(1) == 1 {
			return errors.New("no")
		}
		cancel()
		return nil
	})
	before := measure(t, "measured")
	l.Add(loop.Key{Name: "x"})
	l.Add(loop.Key{Name: "x"}) // the same key waits once
	if got := measure(t, "measured")["workqueue_depth"] - before["workqueue_depth"]; got != 1 {
		t.Errorf("a depth of %v", got)
	}
	l.Run(ctx, 1)
	after := measure(t, "measured")
	for name, want := range map[string]float64{"workqueue_depth": 0, "workqueue_adds_total": 2, "workqueue_retries_total": 1,
		"workqueue_queue_duration_seconds": 2, "workqueue_work_duration_seconds": 2} {
		if got := after[name] - before[name]; got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// measure is every metric of one loop; of a histogram, how often something was observed.
func measure(t *testing.T, name string) map[string]float64 {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(loop.Metrics()...)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if len(m.GetLabel()) == 1 && m.GetLabel()[0].GetValue() == name {
				out[f.GetName()] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return out
}

// Keys come in the order in which they were added, also after a burst and after the line was empty.
func TestInOrder(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var got []string
	const many = 3000
	l := loop.New("ordered", slog.New(slog.DiscardHandler), func(_ context.Context, k loop.Key) error {
		if got = append(got, k.Name); len(got) == 2*many {
			cancel()
		}
		return nil
	})
	var want []string
	for i := range 2 * many {
		want = append(want, strconv.Itoa(i))
	}
	for _, n := range want[:many] {
		l.Add(loop.Key{Name: n})
	}
	go func() {
		for _, n := range want[many:] {
			l.Add(loop.Key{Name: n})
		}
	}()
	l.Run(ctx, 1)
	if !slices.Equal(got, want) {
		t.Errorf("%d of %d, or not in order", len(got), len(want))
	}
}

// The first failures of a key are for who debugs; when they go on, they are a warning.
func TestRepeatedFailuresAreWarnings(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var log bytes.Buffer
	tries := 0
	l := loop.New("failing", slog.New(slog.NewTextHandler(&log, nil)), func(context.Context, loop.Key) error {
		if tries++; tries == 7 {
			cancel() // what fails then is not told
		}
		return errors.New("no")
	})
	l.Add(loop.Key{Namespace: "default", Name: "x"})
	l.Run(ctx, 1)
	if got := log.String(); strings.Count(got, "level=WARN") != 2 || !strings.Contains(got, "key=default/x failures=5") {
		t.Errorf("%d tries, and the log is\n%s", tries, got)
	}
}
