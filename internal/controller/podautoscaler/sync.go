package podautoscaler

import (
	"context"
	"fmt"
	"slices"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/controller/loop"
	"minik8s/internal/controller/podautoscaler/decide"
)

// scaleTries is how often a Scale is written that others write at the same time.
const scaleTries = 5

// sync looks at an autoscaler once.
func (c *Controller) sync(ctx context.Context, key loop.Key, h *autoscalingv2.HorizontalPodAutoscaler) error {
	s := c.stateOf(key, h.UID)
	if api.Revision(h.ResourceVersion) < s.wrote { // the view does not show our own write yet
		fresh, err := client.Get[*autoscalingv2.HorizontalPodAutoscaler](ctx, c.client, client.KeyOf(h))
		if err != nil || fresh.UID != h.UID {
			return ignoreGone(err)
		}
		h = fresh
	}
	in := &decide.Input{Autoscaler: h, History: &s.history, Settings: c.opts.Settings, NodeMemory: c.nodeMemory, Now: c.now()}
	target, err := c.targetOf(h)
	var scale *autoscalingv1.Scale
	if err == nil {
		scale, err = c.client.Scale(ctx, target)
	}
	if err != nil {
		return c.report(ctx, s, h, decide.NoScale(in, err))
	}
	in.Scale = decide.Scale{Wanted: scale.Spec.Replicas, Current: scale.Status.Replicas}
	if decide.NeedsReadings(h, in.Scale) {
		c.gather(ctx, key, in, scale)
	}
	if ctx.Err() != nil {
		return ctx.Err() // what could not be measured says nothing
	}
	in.Now = c.now() // asking took a while
	d := decide.Decide(in)
	if before := d.ToZero(in); before != nil {
		if h, err = c.announce(ctx, s, h, before); err != nil {
			return ignoreGone(err) // of a conflict: the newer autoscaler is looked at
		}
	}
	if d.Rescale {
		d.Finish(in, c.rescale(ctx, target, scale, d.Replicas))
	}
	return c.report(ctx, s, h, d)
}

// announce writes what is to be known before the target is told.
func (c *Controller) announce(ctx context.Context, s *state, h *autoscalingv2.HorizontalPodAutoscaler, status *autoscalingv2.HorizontalPodAutoscalerStatus) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	upd := h.DeepCopy()
	upd.Status = *status
	wrote, err := c.client.Update(ctx, upd, client.WriteOptions{Subresource: api.StatusSubresource})
	if err != nil {
		return h, err
	}
	s.wrote = api.Revision(wrote.GetResourceVersion())
	return wrote.(*autoscalingv2.HorizontalPodAutoscaler), nil
}

func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// targetOf is the object that an autoscaler scales. The error is that of a kind that is not served.
func (c *Controller) targetOf(h *autoscalingv2.HorizontalPodAutoscaler) (client.Key, error) {
	ref := h.Spec.ScaleTargetRef
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return client.Key{}, err
	}
	for _, k := range c.kinds.Stored() {
		if k.Group == gv.Group && k.Kind == ref.Kind {
			return client.Key{Kind: k, Namespace: h.Namespace, Name: ref.Name}, nil
		}
	}
	return client.Key{}, fmt.Errorf("no matches for kind %q in group %q", ref.Kind, gv.Group)
}

// rescale tells the target how many pods it is to have. When somebody else writes the target meanwhile, it is told again, unless
// that was about the number of pods: then it is decided anew.
func (c *Controller) rescale(ctx context.Context, target client.Key, scale *autoscalingv1.Scale, replicas int32) error {
	for try := 1; ; try++ {
		want := scale.DeepCopy()
		want.Spec.Replicas = replicas
		_, err := c.client.SetScale(ctx, target, want)
		if err == nil || !apierrors.IsConflict(err) || try == scaleTries {
			return err
		}
		fresh, getErr := c.client.Scale(ctx, target)
		if getErr == nil && fresh.Spec.Replicas != scale.Spec.Replicas {
			return err
		}
		if getErr == nil {
			scale = fresh
		}
	}
}

// report writes the status, if it is another one, and records the Events. When somebody else has written the autoscaler
// meanwhile it is looked at again at once: what was said then is not said again.
func (c *Controller) report(ctx context.Context, s *state, h *autoscalingv2.HorizontalPodAutoscaler, d *decide.Decision) error {
	for _, e := range d.Events {
		if !slices.Contains(s.said, e) {
			c.record.Event(h, e.Type, e.Reason, "%s", e.Message)
		}
	}
	before := s.said
	s.said = nil
	sum := strings.Join(d.Lines, "\n")
	if apiequality.Semantic.DeepEqual(h.Status, d.Status) && h.Annotations[api.DecisionAnnotation] == sum {
		return nil
	}
	upd := h.DeepCopy()
	upd.Status = d.Status
	if upd.Annotations == nil {
		upd.Annotations = map[string]string{}
	}
	upd.Annotations[api.DecisionAnnotation] = sum
	wrote, err := c.client.Update(ctx, upd, client.WriteOptions{Subresource: api.StatusSubresource})
	if err == nil {
		s.wrote = api.Revision(wrote.GetResourceVersion())
		return nil
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	if apierrors.IsConflict(err) { // the newer autoscaler is looked at
		s.said = append(before, d.Events...)
	} else {
		c.record.Event(h, corev1.EventTypeWarning, "FailedUpdateStatus", "%s", err.Error())
	}
	return err
}
