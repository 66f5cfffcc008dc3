package job

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	ct "minik8s/internal/controller/controllertest"
	"minik8s/internal/controller/sightings"
	"minik8s/internal/events"
)

// lateJobs shows no change of a job while held.
type lateJobs struct {
	client.Interface
	held sync.RWMutex
}

// wait waits until it is not held.
func (l *lateJobs) wait() {
	l.held.RLock()
	defer l.held.RUnlock()
}

type lateWatch struct {
	client.Watcher
	events chan client.Event
}

func (w *lateWatch) Events() <-chan client.Event { return w.events }

func (l *lateJobs) Watch(ctx context.Context, kind *api.Kind, opts client.WatchOptions) (client.Watcher, error) {
	inner, err := l.Interface.Watch(ctx, kind, opts)
	if err != nil || kind != api.Jobs {
		return inner, err
	}
	w := &lateWatch{inner, make(chan client.Event)}
	go func() {
		defer close(w.events)
		for e := range inner.Events() {
			l.wait()
			select {
			case w.events <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	return w, nil
}

// Pods that lose their owner before the controller hears that the job is being deleted are let go of, too.
func TestOrphansBeforeTheDeletionIsSeen(t *testing.T) {
	c := ct.New(t)
	c.Hollow(nil, "n1")
	late := &lateJobs{Interface: c.As("job-controller")}
	j := New(late, nil, events.New(c.As("job-controller"), "t", "", nil), sightings.New(), slog.New(slog.DiscardHandler))
	orphans := make(chan struct{}, 100)
	j.pods.OnChange(func(_, now *corev1.Pod) {
		if now != nil && len(now.OwnerReferences) == 0 {
			orphans <- struct{}{}
		}
	})
	c.Start(j.Run)
	create(c, func(s *batchv1.JobSpec) { s.Parallelism, s.Completions = new(int32(3)), new(int32(3)) })
	untilJob(c, "running", func(j *batchv1.Job) bool { return j.Status.Active == 3 && *j.Status.Ready == 3 })
	late.held.Lock()
	key := client.Key{Kind: api.Jobs, Namespace: metav1.NamespaceDefault, Name: "work"}
	if _, err := c.Admin().Delete(c.Context(), key, &metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}); err != nil {
		t.Fatal(err)
	}
	list, _, err := client.All[*corev1.Pod](c.Context(), c.Admin(), api.Pods, client.ListOptions{})
	if err != nil || len(list) != 3 {
		t.Fatal(list, err)
	}
	for _, p := range list {
		ct.Change(c, api.Pods, p.Name, func(p *corev1.Pod) { p.OwnerReferences = nil })
	}
	for range list {
		<-orphans
	}
	late.held.Unlock()
	ct.Until(c, "let go of", api.Pods, func(list []*corev1.Pod) bool {
		return len(list) == 3 && !slices.ContainsFunc(list, func(p *corev1.Pod) bool { return len(p.Finalizers) > 0 })
	})
}
