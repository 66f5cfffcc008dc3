package podautoscaler_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/client"
	ct "minik8s/internal/controller/controllertest"
	"minik8s/internal/controller/podautoscaler"
	"minik8s/internal/controller/podautoscaler/decide"
)

// contested is a client that comes too late with the first status of each autoscaler, and the Events that there were before the
// status that it could write.
type contested struct {
	client.Interface

	mu     sync.Mutex
	events []string
	tries  int
	before []string
}

func (c *contested) Event(_ api.Object, eventtype, reason, messageFmt string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, eventtype+" "+reason+": "+fmt.Sprintf(messageFmt, args...))
}

func (c *contested) Update(ctx context.Context, obj api.Object, opts client.WriteOptions) (api.Object, error) {
	if _, ok := obj.(*autoscalingv2.HorizontalPodAutoscaler); ok {
		c.mu.Lock()
		c.tries++
		first := c.tries == 1
		if c.tries == 2 {
			c.before = slices.Clone(c.events)
		}
		c.mu.Unlock()
		if first {
			return nil, apierrors.NewConflict(api.HorizontalPodAutoscalers.GR(), obj.GetName(), nil)
		}
	}
	return c.Interface.Update(ctx, obj, opts)
}

// What was said before somebody else wrote the autoscaler is not said again when it is looked at again for that.
func TestEventsAreWrittenOnce(t *testing.T) {
	c := ct.New(t)
	late := &contested{Interface: c.As("podautoscaler-controller")}
	c.Start(podautoscaler.New(late, c.Views(), late, c.Kinds(), &load{c: c}, podautoscaler.Options{Log: slog.New(slog.DiscardHandler)}).Run)
	ct.Create(c, autoscaler("lost", "absent"))
	reason(c, "lost", autoscalingv2.AbleToScale, "FailedGetScale")
	late.mu.Lock()
	defer late.mu.Unlock()
	if len(late.before) != 1 || late.tries < 2 {
		t.Errorf("%d tries, and the Events are %q", late.tries, late.before)
	}
}

// killed is a client whose controller ends at the moment when it has told its target to have no pod.
type killed struct {
	client.Interface
	once sync.Once
	end  func()
}

func (k *killed) SetScale(ctx context.Context, key client.Key, s *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
	out, err := k.Interface.SetScale(ctx, key, s)
	if err == nil && s.Spec.Replicas == 0 {
		k.once.Do(k.end)
		<-ctx.Done() // nothing of it goes on
	}
	return out, err
}

func (k *killed) Update(ctx context.Context, obj api.Object, opts client.WriteOptions) (api.Object, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return k.Interface.Update(ctx, obj, opts)
}

// A controller that ends as it has taken the last pod away has said before that it was itself: whoever comes next makes pods again
// when there is something to do.
func TestKilledAsItScalesToZero(t *testing.T) {
	c := ct.New(t)
	queue := &load{c: c}
	options := podautoscaler.Options{Settings: decide.Defaults, Log: slog.New(slog.DiscardHandler)}
	options.Settings.DownscaleWindow = 0
	ctx, end := context.WithCancel(c.Context())
	first := &killed{Interface: c.As("podautoscaler-controller"), end: end}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		podautoscaler.New(first, c.Views(), &contested{}, c.Kinds(), queue, options).Run(ctx, func() {}) //nolint:errcheck // it is ended
	}()
	target(c, "web", 1)
	rs, err := client.Get[*appsv1.ReplicaSet](c.Context(), c.Admin(), client.Key{Kind: api.ReplicaSets, Namespace: "default", Name: "web"})
	if err != nil {
		t.Fatal(err)
	}
	rs = rs.DeepCopy()
	rs.Status.Replicas = 1
	if _, err := c.Admin().Update(c.Context(), rs, client.WriteOptions{Subresource: api.StatusSubresource}); err != nil {
		t.Fatal(err)
	}
	ct.Create(c, byQueue("web", "web"))
	<-ended
	replicas(c, "web", 0)
	queue.set(3000)
	c.Start(podautoscaler.New(c.As("podautoscaler-controller"), c.Views(), &contested{}, c.Kinds(), queue, options).Run)
	replicas(c, "web", 3)
}

// overtaken is a client before whose first Scale somebody else has switched the target off.
type overtaken struct {
	client.Interface
	once  sync.Once
	first func()
}

func (o *overtaken) SetScale(ctx context.Context, key client.Key, s *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
	o.once.Do(o.first)
	return o.Interface.SetScale(ctx, key, s)
}

// What somebody else says of the number of pods while an autoscaler decides is not overwritten: it is decided anew.
func TestScaledByOthersMeanwhile(t *testing.T) {
	c := ct.New(t)
	part := &overtaken{Interface: c.As("podautoscaler-controller"), first: func() {
		ct.Change(c, api.ReplicaSets, "web", func(rs *appsv1.ReplicaSet) { rs.Spec.Replicas = new(int32(0)) })
	}}
	queue := &load{c: c, milli: 3000}
	target(c, "web", 1)
	ct.Create(c, autoscaler("web", "web", func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Spec.Metrics = byQueue("", "").Spec.Metrics }))
	c.Start(podautoscaler.New(part, c.Views(), &contested{}, c.Kinds(), queue, podautoscaler.Options{Settings: decide.Defaults, Log: slog.New(slog.DiscardHandler)}).Run)
	reason(c, "web", autoscalingv2.ScalingActive, "ScalingDisabled")
	replicas(c, "web", 0)
}
