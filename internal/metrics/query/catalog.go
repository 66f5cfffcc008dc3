package query

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"minik8s/internal/api"
	"minik8s/internal/metrics/query/rules"
)

const (
	// known is how long a catalog is believed, and retry when one that failed, or that lacks a metric, is made again.
	known = 30 * time.Second
	retry = time.Second
	// discoveryTime is how long a client waits for the names alone, and discoveryRetry how long it does not after a failure.
	discoveryTime  = 3 * time.Second
	discoveryRetry = 10 * time.Second
	// forgotten is when a catalog is dropped after the last question.
	forgotten = 10 * time.Minute
	// recent is how far back a series may have ended to be in a catalog: as far as Prometheus looks for a value.
	recent = 5 * time.Minute
)

// metric is a name, and of a custom one the resource that it describes.
type metric struct {
	of   schema.GroupResource
	name string
}

// series is what a metric is asked of.
type series struct {
	name string
	rule *rules.Rule
	kind *api.Kind // nil: external
}

// catalog is the metrics of one group.
type catalog struct {
	source *Source
	list   func(context.Context) (map[metric]series, error)
	turn   chan struct{} // whoever holds its place asks Prometheus
	*remembered
}

// remembered is what a catalog knows.
type remembered struct {
	mu     sync.Mutex
	all    map[metric]series
	at     time.Time // when Prometheus was asked for all
	failed error     // what it said then
	forget *time.Timer
}

func newCatalog(s *Source, list func(context.Context) (map[metric]series, error)) catalog {
	return catalog{source: s, list: list, turn: make(chan struct{}, 1), remembered: &remembered{}}
}

// find is the series of a metric; nil if there is none.
func (c catalog) find(ctx context.Context, m metric) (*series, error) {
	all, err := c.current(ctx, retry, func(all map[metric]series, age time.Duration) bool {
		_, have := all[m]
		return have && age < known || age < retry
	})
	if s, ok := all[m]; ok && err == nil {
		return &s, nil
	}
	return nil, err
}

// names are all metrics, in order. Where Prometheus does not answer they are the last that were known, and not current.
func (c catalog) names(ctx context.Context) (list []metric, current bool) {
	ctx, cancel := context.WithTimeout(ctx, discoveryTime)
	defer cancel()
	all, err := c.current(ctx, discoveryRetry, func(_ map[metric]series, age time.Duration) bool { return age < known })
	list = slices.SortedFunc(maps.Keys(all), func(a, b metric) int {
		return slices.Compare([]string{a.of.String(), a.name}, []string{b.of.String(), b.name})
	})
	return list, err == nil
}

// current is all metrics, asked anew unless they are good enough at their age, or the last failure is as recent as pause. With
// an error they are the last that were known.
func (c catalog) current(ctx context.Context, pause time.Duration, enough func(all map[metric]series, age time.Duration) bool) (map[metric]series, error) {
	look := func() (map[metric]series, error, bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		age := c.source.now().Sub(c.at)
		if c.failed != nil {
			return c.all, c.failed, age < pause
		}
		return c.all, nil, !c.at.IsZero() && enough(c.all, age)
	}
	if all, err, ok := look(); ok {
		return all, err
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		all, _, _ := look()
		return all, c.source.failure(ctx, ctx.Err(), "")
	}
	if all, err, ok := look(); ok { // somebody else has asked meanwhile
		return all, err
	}
	all, err := c.list(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.all = all
	}
	if ctx.Err() != context.Canceled { // a client that went away says nothing of Prometheus
		c.at, c.failed = c.source.now(), err
	}
	if c.forget == nil {
		c.forget = time.AfterFunc(forgotten, c.drop)
	} else {
		c.forget.Reset(forgotten)
	}
	return c.all, err
}

func (c catalog) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all, c.at, c.failed, c.forget = nil, time.Time{}, nil, nil
}

// listCustom asks Prometheus which series have labels of which kinds. As in prometheus-adapter the last rule counts where
// several make one metric.
func (s *Source) listCustom(ctx context.Context) (map[metric]series, error) {
	out, kinds := map[metric]series{}, s.cfg.Kinds().Stored()
	for _, r := range s.rules.Custom {
		of := r.Labels(kinds)
		labels := slices.Sorted(maps.Keys(of))
		if r.Template() { // any kind may have a label: only those that there are are looked at
			there, _, err := s.api.LabelNames(ctx, []string{r.SeriesQuery()}, s.now().Add(-recent), s.now())
			if err != nil {
				return nil, s.failure(ctx, err, r.SeriesQuery())
			}
			labels = slices.DeleteFunc(labels, func(l string) bool { return !slices.Contains(there, model.LabelName(l)) })
		}
		for _, label := range labels {
			with := []string{label}
			if of[label].Namespaced {
				with = append(with, r.NamespaceLabel())
			}
			names, err := s.seriesOf(ctx, r, with...)
			if err != nil {
				return nil, err
			}
			for name, is := range names {
				out[metric{of[label].GR(), name}] = series{is, r, of[label]}
			}
		}
	}
	return out, nil
}

// listExternal asks Prometheus for the names of all series of external rules.
func (s *Source) listExternal(ctx context.Context) (map[metric]series, error) {
	out := map[metric]series{}
	for _, r := range s.rules.External {
		names, err := s.seriesOf(ctx, r)
		if err != nil {
			return nil, err
		}
		for name, is := range names {
			out[metric{name: name}] = series{name: is, rule: r}
		}
	}
	return out, nil
}

// seriesOf are the series of a rule that have all these labels, by the names of their metrics.
func (s *Source) seriesOf(ctx context.Context, r *rules.Rule, labels ...string) (map[string]string, error) {
	q := r.SeriesQuery(labels...)
	values, _, err := s.api.LabelValues(ctx, "__name__", []string{q}, s.now().Add(-recent), s.now())
	if err != nil {
		return nil, s.failure(ctx, err, q)
	}
	out := make(map[string]string, len(values))
	for _, v := range values {
		if name, ok := r.Metric(string(v)); ok {
			out[name] = string(v)
		}
	}
	return out, nil
}
