package query

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"minik8s/internal/api"
	"minik8s/internal/metrics/query/rules"
)

const (
	// known is how long a catalog is believed, and retry when one that failed, or that lacks a metric, is made again.
	known = 30 * time.Second
	retry = time.Second
	// refreshTime bounds the making of a catalog, which goes on when who asked for it has gone; waitTime is how long a question about
	// a metric waits for it, so that there is time left for the answer.
	refreshTime = time.Minute
	waitTime    = 3 * time.Second
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
	*remembered
}

// remembered is what a catalog knows.
type remembered struct {
	mu     sync.Mutex
	making chan struct{} // closed when the catalog that is being made is there; nil: none is
	all    map[metric]series
	at     time.Time // when Prometheus was asked for all
	failed error     // what it said then
	forget *time.Timer
}

func newCatalog(s *Source, list func(context.Context) (map[metric]series, error)) catalog {
	return catalog{source: s, list: list, remembered: &remembered{}}
}

// find is the series of a metric; nil if there is none. If a new catalog is not there in time, an old one has to do.
func (c catalog) find(ctx context.Context, m metric) (*series, error) {
	wait, cancel := context.WithTimeout(ctx, waitTime)
	defer cancel()
	all, err := c.current(wait, retry, func(all map[metric]series, age time.Duration) bool {
		_, have := all[m]
		return have && age < known || age < retry
	})
	if s, ok := all[m]; ok && (err == nil || wait.Err() != nil) {
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
	c.mu.Lock()
	age := c.source.now().Sub(c.at)
	if c.failed != nil && age < pause || c.failed == nil && !c.at.IsZero() && enough(c.all, age) {
		defer c.mu.Unlock()
		return c.all, c.failed
	}
	if c.making == nil {
		c.making = make(chan struct{})
		go c.make(context.WithoutCancel(ctx))
	}
	making := c.making
	c.mu.Unlock()
	select {
	case <-making:
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.all, c.source.failure(ctx, ctx.Err(), "")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all, c.failed
}

// make makes the catalog, for all who wait for it.
func (c catalog) make(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, refreshTime)
	defer cancel()
	all, err := c.list(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.all = all
	}
	c.at, c.failed = c.source.now(), err
	close(c.making)
	c.making = nil
	if c.forget == nil {
		c.forget = time.AfterFunc(forgotten, c.drop)
	} else {
		c.forget.Reset(forgotten)
	}
}

func (c catalog) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all, c.at, c.failed, c.forget = nil, time.Time{}, nil, nil
}

// listCustom asks Prometheus which series have labels of which kinds. As in prometheus-adapter the last rule counts where
// several make one metric.
func (s *Source) listCustom(ctx context.Context) (map[metric]series, error) {
	kinds := s.cfg.Kinds().Stored()
	return s.listAll(ctx, s.rules.Custom, func(ctx context.Context, r *rules.Rule, out map[metric]series) error {
		of := r.Labels(kinds)
		labels := slices.Sorted(maps.Keys(of))
		if r.Template() { // any kind may have a label: only those that there are are looked at
			there, err := s.labelsOf(ctx, r)
			if err != nil {
				return err
			}
			labels = slices.DeleteFunc(labels, func(l string) bool { return !slices.Contains(there, l) })
		}
		for _, label := range labels {
			with := []string{label}
			if of[label].Namespaced {
				namespace := r.NamespaceLabel()
				if namespace == "" {
					continue // nothing says which object of that name it is
				}
				with = append(with, namespace)
			}
			names, err := s.seriesOf(ctx, r, with...)
			if err != nil {
				return err
			}
			for name, is := range names {
				out[metric{of[label].GR(), name}] = series{is, r, of[label]}
			}
		}
		return nil
	})
}

// listExternal asks Prometheus for the names of all series of external rules.
func (s *Source) listExternal(ctx context.Context) (map[metric]series, error) {
	return s.listAll(ctx, s.rules.External, func(ctx context.Context, r *rules.Rule, out map[metric]series) error {
		names, err := s.seriesOf(ctx, r)
		for name, is := range names {
			out[metric{name: name}] = series{name: is, rule: r}
		}
		return err
	})
}

// listAll lists what each rule makes. One that Prometheus refuses makes nothing, and does not hinder the others.
func (s *Source) listAll(ctx context.Context, all []*rules.Rule, list func(context.Context, *rules.Rule, map[metric]series) error) (map[metric]series, error) {
	out := map[metric]series{}
	var refused error
	for _, r := range all {
		err := list(ctx, r, out)
		switch {
		case apierrors.IsInternalError(err):
			refused = err
		case err != nil:
			return nil, err
		}
	}
	if len(out) > 0 {
		refused = nil
	}
	return out, refused
}

// labelsOf are the labels that series of a rule have.
func (s *Source) labelsOf(ctx context.Context, r *rules.Rule) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	names, _, err := s.api.LabelNames(ctx, []string{r.SeriesQuery()}, s.now().Add(-recent), s.now())
	if err != nil {
		return nil, s.failure(ctx, err, r.SeriesQuery())
	}
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = string(n)
	}
	return out, nil
}

// seriesOf are the series of a rule that have all these labels, by the names of their metrics.
func (s *Source) seriesOf(ctx context.Context, r *rules.Rule, labels ...string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
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
