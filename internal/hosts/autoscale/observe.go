package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// often is the time between two samples.
const often = 500 * time.Millisecond

// observer keeps the record.
type observer struct {
	cluster client.Interface
	app     string // name of the autoscaler, the Service and the pods' label app
	began   time.Time
	out     io.Writer

	mu     sync.Mutex
	record record
	lost   error // why there are no more samples
}

func key(k *api.Kind, name string) client.Key {
	return client.Key{Kind: k, Namespace: metav1.NamespaceDefault, Name: name}
}

// begin waits until the autoscaler knows what its pods use; the record begins then.
func (o *observer) begin(ctx context.Context) error {
	h, err := client.Get[*autoscalingv2.HorizontalPodAutoscaler](ctx, o.cluster, key(api.HorizontalPodAutoscalers, o.app))
	if err != nil {
		return err
	}
	m := h.Spec.Metrics
	if h.Spec.MinReplicas == nil || len(m) != 1 || m[0].Resource == nil || m[0].Resource.Target.AverageUtilization == nil {
		return fmt.Errorf("autoscaler %s: expected minReplicas and one metric, a resource's averageUtilization", o.app)
	}
	o.record = record{least: int(*h.Spec.MinReplicas), most: int(h.Spec.MaxReplicas), target: int(*m[0].Resource.Target.AverageUtilization)}
	o.began = time.Now()
	for {
		s, err := o.look(ctx)
		if err != nil {
			return err
		}
		if s.used >= 0 && s.wanted > 0 {
			break
		}
		if time.Since(o.began) > longest {
			return fmt.Errorf("within %s the autoscaler has not learned what its pods use: %s", longest, s)
		}
		if err := pause(ctx, often); err != nil {
			return err
		}
	}
	o.began = time.Now()
	return o.see(ctx)
}

// run takes samples until the context ends.
func (o *observer) run(ctx context.Context) {
	for pause(ctx, often) == nil {
		if err := o.see(ctx); err != nil && ctx.Err() == nil {
			o.mu.Lock()
			o.lost = err
			o.mu.Unlock()
			return
		}
	}
}

// see adds a sample, and tells it if something has changed.
func (o *observer) see(ctx context.Context) error {
	s, err := o.look(ctx)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	r := &o.record
	if n := len(r.samples); n == 0 || r.samples[n-1].wanted != s.wanted || r.samples[n-1].pods != s.pods || len(r.samples[n-1].ready) != len(s.ready) {
		fmt.Fprintln(o.out, s)
	}
	r.samples = append(r.samples, s)
	return nil
}

// look takes a sample.
func (o *observer) look(ctx context.Context) (sample, error) {
	h, err := client.Get[*autoscalingv2.HorizontalPodAutoscaler](ctx, o.cluster, key(api.HorizontalPodAutoscalers, o.app))
	if err != nil {
		return sample{}, err
	}
	pods, _, err := client.All[*corev1.Pod](ctx, o.cluster, api.Pods,
		client.ListOptions{Namespace: metav1.NamespaceDefault, Labels: labels.SelectorFromSet(labels.Set{"app": o.app})})
	if err != nil {
		return sample{}, err
	}
	s := sample{at: time.Since(o.began), wanted: int(h.Status.DesiredReplicas), pods: len(pods), used: -1, ready: map[string]string{}}
	for _, m := range h.Status.CurrentMetrics {
		if m.Resource != nil && m.Resource.Current.AverageUtilization != nil {
			s.used = int(*m.Resource.Current.AverageUtilization)
		}
	}
	for _, p := range pods {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil {
				s.ready[p.Name] = p.Spec.NodeName
			}
		}
	}
	return s, nil
}

// answered adds a request to the record.
func (o *observer) answered(began time.Time, pod string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := began.Sub(o.began)
	if err != nil {
		o.record.failures = append(o.record.failures, failure{at, err})
		return
	}
	o.record.answers = append(o.record.answers, answer{at, time.Since(began), pod})
}

// asks says that the client asks as in a phase from now on.
func (o *observer) asks(p *phase) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.record.moments = append(o.record.moments, moment{time.Since(o.began), p.rate, p.work, p.press})
}

// last is the latest sample, or why there are no more.
func (o *observer) last() (sample, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.record.samples[len(o.record.samples)-1], o.lost
}

// pause lets time pass.
func pause(ctx context.Context, d time.Duration) error {
	short, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-short.Done()
	return ctx.Err()
}
