package metricsapi

import (
	"context"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	metrics "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

const (
	// keep is how long an answer counts. All autoscalers that are looked at in one go share it.
	keep = time.Second
	// remember is how long a selector counts as one that is asked for: longer than autoscalers wait by default.
	remember = time.Minute
)

// namespace is what is known of the pods of one namespace.
type namespace struct {
	asked   map[string]time.Time // selectors, and when they were asked for last
	answers map[string]*answer   // by selector; the empty one is the whole namespace
	bare    bool                 // pods come without labels: each selector has to be asked for
}

// answer is the answer to one question, or the question while it is under way.
type answer struct {
	done    chan struct{}
	at      time.Time // when it was complete
	items   []*metrics.PodMetrics
	byLabel map[[2]string][]*metrics.PodMetrics // of the whole namespace
	labels  bool                                // one of the items at least has labels, or there is none
	err     error
}

// podMetrics are the metrics of a namespace's pods that a selector selects.
func (c *Client) podMetrics(ctx context.Context, ns string, pods labels.Selector) ([]*metrics.PodMetrics, error) {
	text := pods.String()
	if c.several(ns, text) {
		a := c.question(ctx, ns, "")
		if a.err != nil || a.labels {
			return a.of(pods), a.err
		}
		c.mu.Lock()
		if n := c.namespaces[ns]; n != nil {
			n.bare = true
		}
		c.mu.Unlock()
	}
	a := c.question(ctx, ns, text)
	return a.items, a.err
}

// several notes that a selector is asked for, and reports whether it is better to ask for the whole namespace.
func (c *Client) several(ns, selector string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	n := c.namespaces[ns]
	if n == nil {
		c.sweep(now)
		n = &namespace{asked: map[string]time.Time{}, answers: map[string]*answer{}}
		c.namespaces[ns] = n
	}
	n.asked[selector] = now
	if len(n.asked) == 1 || n.bare {
		return false
	}
	for s, at := range n.asked {
		if s != selector && now.Sub(at) <= remember {
			return true
		}
		if now.Sub(at) > remember {
			delete(n.asked, s)
		}
	}
	return len(n.asked) > 1
}

// sweep forgets namespaces of which nothing was asked for a while.
func (c *Client) sweep(now time.Time) {
	for name, n := range c.namespaces {
		for s, at := range n.asked {
			if now.Sub(at) > remember {
				delete(n.asked, s)
			}
		}
		if len(n.asked) == 0 {
			delete(c.namespaces, name)
		}
	}
}

// question asks, unless that was asked within the last moment or is being asked. An answer that is too old is let go when
// the next question comes.
func (c *Client) question(ctx context.Context, ns, selector string) *answer {
	c.mu.Lock()
	n := c.namespaces[ns]
	if n == nil { // it was forgotten meanwhile
		n = &namespace{asked: map[string]time.Time{}, answers: map[string]*answer{}}
		c.namespaces[ns] = n
	}
	for s, a := range n.answers {
		if !a.at.IsZero() && c.now().Sub(a.at) >= keep {
			delete(n.answers, s)
		}
	}
	a := n.answers[selector]
	if a != nil {
		c.mu.Unlock()
		select {
		case <-a.done:
			return a
		case <-ctx.Done():
			return &answer{err: ctx.Err()}
		}
	}
	a = &answer{done: make(chan struct{})}
	n.answers[selector] = a
	c.mu.Unlock()
	query := url.Values{}
	if selector != "" {
		query.Set("labelSelector", selector)
	}
	list := &metrics.PodMetricsList{}
	a.err = c.ask(ctx, "/apis/metrics.k8s.io/v1beta1/"+escaped("namespaces/"+ns+"/pods"), query, list)
	a.take(list, selector == "")
	c.mu.Lock()
	a.at = c.now()
	c.mu.Unlock()
	close(a.done)
	return a
}

func (a *answer) take(list *metrics.PodMetricsList, whole bool) {
	a.items = make([]*metrics.PodMetrics, len(list.Items))
	a.labels = len(list.Items) == 0
	if whole {
		a.byLabel = map[[2]string][]*metrics.PodMetrics{}
	}
	for i := range list.Items {
		p := &list.Items[i]
		a.items[i] = p
		a.labels = a.labels || len(p.Labels) > 0
		if whole {
			for k, v := range p.Labels {
				a.byLabel[[2]string{k, v}] = append(a.byLabel[[2]string{k, v}], p)
			}
		}
	}
}

// of returns those that a selector selects: looked for among the pods that have one label of it, if it asks for one.
func (a *answer) of(pods labels.Selector) []*metrics.PodMetrics {
	among := a.items
	requirements, _ := pods.Requirements()
	for _, r := range requirements {
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			if values := r.ValuesUnsorted(); len(values) == 1 {
				if some := a.byLabel[[2]string{r.Key(), values[0]}]; len(some) < len(among) {
					among = some
				}
			}
		}
	}
	var out []*metrics.PodMetrics
	for _, p := range among {
		if pods.Matches(labels.Set(p.Labels)) {
			out = append(out, p)
		}
	}
	return out
}

// used is how much a pod, or one of its containers, uses of a resource, in thousandths; false: not all of it is known.
func used(p *metrics.PodMetrics, resource corev1.ResourceName, container string) (int64, bool) {
	var sum int64
	for i := range p.Containers {
		m := &p.Containers[i]
		if container != "" && m.Name != container {
			continue
		}
		q, ok := m.Usage[resource]
		if !ok {
			return 0, false
		}
		if sum += q.MilliValue(); container != "" {
			return sum, true
		}
	}
	return sum, container == "" && len(p.Containers) > 0
}
