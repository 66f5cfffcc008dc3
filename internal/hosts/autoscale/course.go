package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/remote"
	"minik8s/internal/hosts"
	"minik8s/internal/hosts/autoscale/chart"
)

const (
	// often is the time between two samples, and pause between two requests.
	often = 500 * time.Millisecond
	pause = 50 * time.Millisecond
	// patience bounds a request.
	patience = 5 * time.Second
)

// course is what is seen, as long as it runs.
type course struct {
	cluster *remote.Client
	from    *hosts.Host
	address string // of the Service
	began   time.Time
	stop    context.CancelFunc
	done    sync.WaitGroup

	mu       sync.Mutex
	samples  []sample
	answers  []answer
	failures []string
	marks    []chart.Mark
}

// watch begins.
func watch(ctx context.Context, lab *hosts.Lab) (*course, error) {
	cluster, err := lab.Host("master").API()
	if err != nil {
		return nil, err
	}
	c := &course{cluster: cluster, from: lab.Host("worker1")}
	svc, err := client.Get[*corev1.Service](ctx, c.cluster, key(api.Services, "web"))
	if err != nil {
		return nil, err
	}
	c.address = svc.Spec.ClusterIP
	c.began = time.Now()
	ctx, c.stop = context.WithCancel(ctx)
	if err := c.look(ctx); err != nil {
		c.stop()
		return nil, err
	}
	c.done.Go(func() { every(ctx, often, func() { c.note(c.look(ctx)) }) })
	c.done.Go(func() { every(ctx, pause, func() { c.request(ctx) }) })
	return c, nil
}

// errPassed ends a pause.
var errPassed = errors.New("the time has passed")

func key(k *api.Kind, name string) client.Key {
	return client.Key{Kind: k, Namespace: "default", Name: name}
}

func every(ctx context.Context, d time.Duration, f func()) {
	t := time.NewTicker(d)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			f()
		}
	}
}

func (c *course) end() {
	c.stop()
	c.done.Wait()
}

// look takes a sample, and says what has changed.
func (c *course) look(ctx context.Context) error {
	h, err := client.Get[*autoscalingv2.HorizontalPodAutoscaler](ctx, c.cluster, key(api.HorizontalPodAutoscalers, "web"))
	if err != nil {
		return err
	}
	pods, err := c.cluster.List(ctx, api.Pods, client.ListOptions{Namespace: "default", Labels: labels.SelectorFromSet(labels.Set{"app": "web"})})
	if err != nil {
		return err
	}
	s := sample{at: time.Since(c.began), wanted: int(h.Status.DesiredReplicas), pods: len(pods.Items), least: int(*h.Spec.MinReplicas), most: int(h.Spec.MaxReplicas),
		used: -1, target: int(*h.Spec.Metrics[0].Resource.Target.AverageUtilization), nodes: map[string]string{}}
	for _, m := range h.Status.CurrentMetrics {
		if m.Resource != nil && m.Resource.Current.AverageUtilization != nil {
			s.used = int(*m.Resource.Current.AverageUtilization)
		}
	}
	for _, o := range pods.Items {
		p := o.(*corev1.Pod)
		for _, cond := range p.Status.Conditions {
			if cond.Type == corev1.PodReady && cond.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil {
				s.ready++
				s.nodes[p.Name] = p.Spec.NodeName
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.samples); n == 0 || c.samples[n-1].wanted != s.wanted || c.samples[n-1].ready != s.ready {
		fmt.Println(s)
	}
	c.samples = append(c.samples, s)
	return nil
}

// String is a line for people.
func (s sample) String() string {
	on := map[string]int{}
	for _, node := range s.nodes {
		on[node]++
	}
	used := "?"
	if s.used >= 0 {
		used = fmt.Sprint(s.used)
	}
	return fmt.Sprintf("%5.1f s  cpu %3s%% of %d%%   wanted %d   ready %d  %s", s.at.Seconds(), used, s.target, s.wanted, s.ready, strings.TrimPrefix(fmt.Sprint(on), "map"))
}

func (c *course) request(ctx context.Context) {
	pod, err := c.get(ctx, "/")
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		c.note(err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers = append(c.answers, answer{time.Since(c.began), pod})
}

// get asks the Service, on a new connection.
func (c *course) get(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return c.from.Get(ctx, "http://"+c.address+path)
}

func (c *course) note(err error) {
	if err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures = append(c.failures, fmt.Sprintf("%q after %.1f s", err, time.Since(c.began).Seconds()))
}

func (c *course) mark(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.marks = append(c.marks, chart.Mark{At: time.Since(c.began), Name: name})
}

func (c *course) last() sample {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.samples[len(c.samples)-1]
}

// pass lets time pass, which is to be seen in the picture.
func (c *course) pass(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, d, errPassed)
	defer cancel()
	<-ctx.Done()
	if context.Cause(ctx) == errPassed {
		return nil
	}
	return ctx.Err()
}

// until waits for a sample.
func (c *course) until(ctx context.Context, what string, ok func(sample) bool) error {
	for end := time.Now().Add(longest); !ok(c.last()); {
		if time.Now().After(end) {
			return fmt.Errorf("within %s it did not come to that %s: %s", longest, what, c.last())
		}
		if err := c.pass(ctx, often); err != nil {
			return err
		}
	}
	return nil
}

// draw writes the picture.
func (c *course) draw(path string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	wanted, ready := chart.Line{Name: "wanted", Steps: true, Dashed: true}, chart.Line{Name: "ready", Steps: true}
	target, used := chart.Line{Name: "target", Dashed: true}, chart.Line{Name: "used"}
	for _, s := range c.samples {
		wanted.Points = append(wanted.Points, chart.Point{At: s.at, Value: float64(s.wanted)})
		ready.Points = append(ready.Points, chart.Point{At: s.at, Value: float64(s.ready)})
		target.Points = append(target.Points, chart.Point{At: s.at, Value: float64(s.target)})
		if s.used >= 0 {
			used.Points = append(used.Points, chart.Point{At: s.at, Value: float64(s.used)})
		}
	}
	all, most := perSecond(c.answers)
	p := chart.Picture{Title: "Replicas that follow the load", Marks: c.marks, Panels: []chart.Panel{
		{Title: "replicas", Lines: []chart.Line{ready, wanted}},
		{Title: "CPU, of what is requested", Unit: "%", Lines: []chart.Line{used, target}},
		{Title: "requests per second", Lines: []chart.Line{{Name: "all pods", Points: all}, {Name: "the busiest", Points: most}}},
	}}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := p.Draw(f); err != nil {
		f.Close() //nolint:errcheck // it could not be written
		return err
	}
	return f.Close()
}

// perSecond counts answers in each whole second: of all pods, and of the one with most.
func perSecond(answers []answer) (all, most []chart.Point) {
	var pods []map[string]int
	for _, a := range answers {
		for len(pods) <= int(a.at.Seconds()) {
			pods = append(pods, map[string]int{})
		}
		pods[int(a.at.Seconds())][a.pod]++
	}
	for i, counts := range pods[:max(0, len(pods)-1)] { // the last second is not over
		sum, top := 0, 0
		for _, n := range counts {
			sum, top = sum+n, max(top, n)
		}
		at := time.Duration(i)*time.Second + time.Second/2
		all, most = append(all, chart.Point{At: at, Value: float64(sum)}), append(most, chart.Point{At: at, Value: float64(top)})
	}
	return all, most
}
