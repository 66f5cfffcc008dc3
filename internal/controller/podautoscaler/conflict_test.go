package podautoscaler_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/client"
	ct "minik8s/internal/controller/controllertest"
	"minik8s/internal/controller/podautoscaler"
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
