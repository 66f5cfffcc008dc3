package objects

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/bench/bed"
	"minik8s/internal/client"
	"minik8s/internal/scheduler"
)

const (
	schedulerNodes = 5000
	schedulerPods  = 10000
	// antiGroups is the number of sets, in the second figure, of pods that must be apart from each other.
	antiGroups = 20
)

// Scheduler measures the scheduler alone, in this process, with an API that answers at once: nodes without
// machines, waiting pods, and bindings that are only counted. The time is from when the scheduler has the first pod
// until the last binding.
func Scheduler(r *bed.Report) error {
	bound := fmt.Sprintf("%d nodes, %d pods, in process, bindings only counted", schedulerNodes, schedulerPods)
	for _, kind := range []struct {
		name, reach string
		apart       bool
	}{
		{"scheduler alone, plain pods", ">= 10,000 /s", false},
		{"scheduler alone, required anti-affinity", ">= 2,000 /s", true},
	} {
		took, err := schedule(kind.apart)
		if err != nil {
			return err
		}
		r.Add(kind.name, schedulerPods/took.Seconds(), "/s", kind.reach, bound)
	}
	return nil
}

func schedule(apart bool) (time.Duration, error) {
	h := &hollowAPI{done: make(chan struct{})}
	for i := range schedulerNodes {
		h.nodes = append(h.nodes, hollowNode(i))
	}
	for i := range schedulerPods {
		h.pods = append(h.pods, hollowPod(i, apart))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	s := scheduler.New(h, nil, nil, scheduler.Config{}, slog.New(slog.DiscardHandler))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, func() {}) }()
	select {
	case <-h.done:
	case <-ctx.Done():
		return 0, fmt.Errorf("only %d of %d pods were bound", h.bound.Load(), schedulerPods)
	}
	took := time.Since(h.listed)
	cancel()
	return took, <-ended
}

func hollowNode(i int) *corev1.Node {
	name := fmt.Sprintf("node-%04d", i)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: "1", Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%3)}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("32"),
				corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110")},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

func hollowPod(i int, apart bool) *corev1.Pod {
	name := fmt.Sprintf("pod-%05d", i)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), ResourceVersion: "1",
			Labels: map[string]string{"group": fmt.Sprint(i % antiGroups)}},
		Spec: corev1.PodSpec{SchedulerName: scheduler.Name, Containers: []corev1.Container{{Name: "c", Image: "demo:1",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi")}}}}},
	}
	if apart {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}}}}}
	}
	return p
}

// hollowAPI is the part of an API that the scheduler needs, at no cost.
type hollowAPI struct {
	client.Interface // nil: nothing else is called
	nodes, pods      []api.Object
	listed           time.Time // when the pods were watched
	bound            atomic.Int64
	done             chan struct{}
}

// Watch sends everything that exists, and then nothing more.
func (h *hollowAPI) Watch(ctx context.Context, kind *api.Kind, _ client.WatchOptions) (client.Watcher, error) {
	var items []api.Object
	switch kind {
	case api.Nodes:
		items = h.nodes
	case api.Pods:
		h.listed = time.Now()
		items = h.pods
	}
	w := &hollowWatch{events: make(chan client.Event)}
	go func() {
		defer close(w.events)
		end := client.Event{Type: client.Bookmark, ResourceVersion: "1", InitialEnd: true}
		for i := range len(items) + 1 {
			e := end
			if i < len(items) {
				e = client.Event{Type: client.Added, Object: items[i], ResourceVersion: "1"}
			}
			select {
			case w.events <- e:
			case <-ctx.Done():
				return
			}
		}
		<-ctx.Done()
	}()
	return w, nil
}

func (h *hollowAPI) Bind(context.Context, string, string, types.UID, string) error {
	if h.bound.Add(1) == schedulerPods {
		close(h.done)
	}
	return nil
}

type hollowWatch struct{ events chan client.Event }

func (w *hollowWatch) Events() <-chan client.Event { return w.events }
func (w *hollowWatch) Err() error                  { return nil }
func (w *hollowWatch) Stop()                       {}
