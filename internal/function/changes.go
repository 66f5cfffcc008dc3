package function

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/function/plan"
)

// The pauses of a follower: after a watch that broke, and between two notes of how far it has come. Where nothing happens it is noted, too, before the
// history since the last note is compacted.
const (
	watchAgain = time.Second
	noteEvery  = time.Second
	noteQuiet  = 2 * time.Minute
)

// follow makes a call for each change of the objects, until ctx ends.
func (t *triggers) follow(ctx context.Context, fn *minik8s.Function, trigger string, what *minik8s.FunctionObjectTrigger) {
	kind := t.kinds.ByGVK(schema.FromAPIVersionAndKind(what.APIVersion, what.Kind))
	selector, err := metav1.LabelSelectorAsSelector(what.Selector)
	if kind == nil || err != nil {
		t.of.log.Warn("a trigger's kind is not served any more", "function", keyOf(fn), "trigger", trigger, "kind", what.Kind)
		return
	}
	if what.Selector == nil {
		selector = labels.Everything()
	}
	f := &changes{t: t, fn: fn, trigger: trigger, what: what, kind: kind, selector: selector, rate: newRate()}
	if kind.Namespaced && !what.AllNamespaces {
		f.namespace = fn.Namespace
	}
	for {
		err := f.run(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			t.of.log.Info("a trigger's watch is opened again", "function", keyOf(fn), "trigger", trigger, "error", err)
		}
		select {
		case <-time.After(watchAgain):
		case <-ctx.Done():
			return
		}
	}
}

// changes are those of the objects of one trigger.
type changes struct {
	t         *triggers
	fn        *minik8s.Function
	trigger   string
	what      *minik8s.FunctionObjectTrigger
	kind      *api.Kind
	namespace string
	selector  labels.Selector

	revision string    // up to which changes have their calls; empty: not known
	at       time.Time // about when that was; zero: not known
	noted    string    // what of revision is in the function's status
	written  time.Time // when it was noted last

	rate     *rate.Limiter
	held     time.Time // when changes came faster than calls may be made
	heldBack bool      // the function's status says so
}

// A trigger makes so many calls a second, and so many at once: two functions that change what the other looks at would call each other as fast as
// the machine can.
const (
	triggerRate  = 10
	triggerBurst = 100
	// calm is after how long without such a rush the function's status does not speak of one any more.
	calm = time.Minute
)

// run follows the changes until the watch ends.
func (c *changes) run(ctx context.Context) error {
	if c.revision == "" {
		now, err := client.Get[*minik8s.Function](ctx, c.t.of.client, client.KeyOf(c.fn))
		if err != nil {
			return err
		}
		state := stateOf(now, c.trigger)
		c.revision, c.noted = state.Revision, state.Revision
		if state.LastTime != nil {
			c.at = state.LastTime.Time
		}
		c.heldBack = apimeta.IsStatusConditionTrue(now.Status.Conditions, minik8s.FunctionTriggersHeldBack)
	}
	if c.revision == "" { // it is new: what is there already is no change
		list, err := c.t.of.client.List(ctx, c.kind, client.ListOptions{Namespace: c.namespace, Labels: c.selector, Limit: 1})
		if err != nil {
			return err
		}
		c.revision, c.at = list.ResourceVersion, clock.Now()
		if err := c.note(ctx); err != nil {
			return err
		}
	}
	w, err := c.t.of.client.Watch(ctx, c.kind, client.WatchOptions{Namespace: c.namespace, Labels: c.selector, ResourceVersion: c.revision, Bookmarks: true})
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return c.catchUp(ctx)
	}
	if err != nil {
		return err
	}
	return c.listen(ctx, w)
}

// listen makes calls for what a watch shows, until it ends.
func (c *changes) listen(ctx context.Context, w client.Watcher) error {
	defer w.Stop()
	var later <-chan time.Time
	for {
		select {
		case e, ok := <-w.Events():
			if !ok {
				if err := w.Err(); apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
					return c.catchUp(ctx)
				}
				return w.Err()
			}
			if e.Object != nil {
				called, err := c.call(ctx, e.Type, e.Object, e.ResourceVersion)
				if err != nil {
					return err
				}
				if called && later == nil {
					later = time.After(noteEvery)
				}
			}
			c.revision, c.at = e.ResourceVersion, clock.Now()
			if e.Object == nil && (time.Since(c.written) > noteQuiet || c.heldBack && time.Since(c.held) > calm) {
				if err := c.note(ctx); err != nil {
					return err
				}
			}
		case <-later:
			later = nil
			if err := c.note(ctx); err != nil {
				return err
			}
		}
	}
}

// catchUp makes calls for what has changed since, where the history is gone. What was deleted meanwhile is not known any more.
func (c *changes) catchUp(ctx context.Context) error {
	since, err := strconv.ParseUint(c.revision, 10, 64)
	if err != nil {
		return err
	}
	list, err := c.t.of.client.List(ctx, c.kind, client.ListOptions{Namespace: c.namespace, Labels: c.selector})
	if err != nil {
		return err
	}
	for _, o := range list.Items {
		if at, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64); err != nil || at <= since {
			continue
		}
		happened := client.Modified
		if made := o.GetCreationTimestamp(); !c.at.IsZero() && !made.Time.Before(c.at.Truncate(time.Second)) { // as well as the masters' clocks agree
			happened = client.Added
		}
		if _, err := c.call(ctx, happened, o, o.GetResourceVersion()); err != nil {
			return err
		}
	}
	c.revision, c.at = list.ResourceVersion, clock.Now()
	return c.note(ctx)
}

func newRate() *rate.Limiter { return rate.NewLimiter(triggerRate, triggerBurst) }

// note writes how far the trigger has come, and whether it is held back.
func (c *changes) note(ctx context.Context) error {
	back := !c.held.IsZero() && time.Since(c.held) <= calm
	if c.noted == c.revision && back == c.heldBack {
		return nil
	}
	state := minik8s.FunctionTriggerStatus{Name: c.trigger, Revision: c.revision, LastTime: &metav1.Time{Time: c.at}}
	err := c.t.note(ctx, c.fn, state, func(s *minik8s.FunctionStatus) {
		about := apimeta.FindStatusCondition(s.Conditions, minik8s.FunctionTriggersHeldBack)
		switch {
		case back:
			apimeta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: minik8s.FunctionTriggersHeldBack, Status: metav1.ConditionTrue, Reason: "TooManyChanges",
				LastTransitionTime: metav1.NewTime(clock.Now()), ObservedGeneration: c.fn.Generation,
				Message: aboutTrigger(c.trigger) + fmt.Sprintf("objects of kind %s change more than %d times a second, and calls are made no faster: does the function, or one that it calls, change what it looks at? Select fewer objects, or changes (spec.triggers)", c.kind.Kind, triggerRate)})
		case c.heldBack && about != nil && strings.HasPrefix(about.Message, aboutTrigger(c.trigger)):
			apimeta.RemoveStatusCondition(&s.Conditions, minik8s.FunctionTriggersHeldBack)
		}
	})
	if err == nil {
		c.noted, c.written, c.heldBack = c.revision, time.Now(), back
	}
	return err
}

// aboutTrigger begins the message of FunctionTriggersHeldBack.
func aboutTrigger(name string) string { return "trigger " + name + ": " }

// pace waits until one call more may be made.
func (c *changes) pace(ctx context.Context) error {
	if c.rate.Allow() {
		return nil
	}
	c.held = time.Now()
	if !c.heldBack {
		if err := c.note(ctx); err != nil {
			return err
		}
	}
	return c.rate.Wait(ctx)
}

// typeOf are the changes' names.
var typeOf = map[client.EventType]string{client.Added: minik8s.ObjectCreated, client.Modified: minik8s.ObjectUpdated, client.Deleted: minik8s.ObjectDeleted}

// call makes the call for one change, if it counts. The function's own instances and what belongs to them do not: its calls change
// those.
func (c *changes) call(ctx context.Context, happened client.EventType, o api.Object, revision string) (bool, error) {
	kind := typeOf[happened]
	if kind == "" || len(c.what.On) > 0 && !slices.Contains(c.what.On, kind) || plan.Own(c.fn, o) {
		return false, nil
	}
	body, err := json.Marshal(minik8s.FunctionEvent{Trigger: c.trigger, Type: kind, Object: c.shown(o)})
	if err == nil && len(body) > maxKept {
		body, err = json.Marshal(minik8s.FunctionEvent{Trigger: c.trigger, Type: kind, Object: c.bare(o)})
	}
	if err != nil {
		return false, err
	}
	if err := c.pace(ctx); err != nil {
		return false, err
	}
	name := o.GetName()
	if o.GetNamespace() != "" {
		name = o.GetNamespace() + "/" + name
	}
	return true, c.t.call(ctx, c.fn, c.trigger, fmt.Sprintf("%s %s %s at %s", c.kind.Kind, name, kind, revision), body, "application/json")
}

// shown is what a call has of an object: of a Secret only what is no secret, since calls are read by more people.
func (c *changes) shown(o api.Object) any {
	if _, secret := o.(*corev1.Secret); secret {
		return c.bare(o)
	}
	out := o.DeepCopyObject()
	out.GetObjectKind().SetGroupVersionKind(c.kind.GVK())
	if m, err := apimeta.Accessor(out); err == nil {
		m.SetManagedFields(nil)
	}
	return out
}

// bare is an object's kind and metadata, but for annotations, in which tools keep whole manifests.
func (c *changes) bare(o api.Object) any {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: c.kind.APIVersion(), Kind: c.kind.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
			Labels: o.GetLabels(), CreationTimestamp: o.GetCreationTimestamp(), DeletionTimestamp: o.GetDeletionTimestamp()}}
}
