package function

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/api/validation"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/controller/loop"
	"minik8s/internal/function/plan"
	"minik8s/internal/supervise"
)

// triggers call functions when it is time, and when objects change. A call is a FunctionCall whose name is that of its event, so that
// an event that is met twice, as after a kill, makes one call. How far a trigger has come is in the function's status, and written after
// the call.
type triggers struct {
	of    *Controller
	kinds *api.Table
	loop  *loop.Loop
	tasks *supervise.Tasks // of the controller's Run

	mu        sync.Mutex
	followers map[followed]*follower
}

// followed is a trigger by objects.
type followed struct {
	function types.UID
	trigger  string
}

// follower watches for one trigger.
type follower struct {
	key  loop.Key
	what minik8s.FunctionObjectTrigger
	stop context.CancelFunc
}

func newTriggers(of *Controller, kinds *api.Table) *triggers {
	t := &triggers{of: of, kinds: kinds, followers: map[followed]*follower{}}
	t.loop = loop.New("function-trigger", of.log, t.reconcile)
	return t
}

// changed takes over a change of a function.
func (t *triggers) changed(old, now *minik8s.Function) {
	var before, after []minik8s.FunctionTrigger
	if old != nil {
		before = old.Spec.Triggers
	}
	if now != nil {
		after = now.Spec.Triggers
	}
	if old != nil && now != nil && old.UID == now.UID && apiequality.Semantic.DeepEqual(before, after) || len(before)+len(after) == 0 {
		return
	}
	if now == nil {
		now = old
	}
	t.loop.Add(keyOf(now))
}

// reconcile makes the calls whose time has come, and has objects watched, for one function.
func (t *triggers) reconcile(ctx context.Context, key loop.Key) error {
	fn, ok := t.of.functions.Get(key.Namespace, key.Name)
	if ok {
		t.watchFor(fn)
	}
	t.forget(key, fn)
	if !ok || fn.DeletionTimestamp != nil {
		return nil
	}
	if !slices.ContainsFunc(fn.Spec.Triggers, func(x minik8s.FunctionTrigger) bool { return x.Schedule != "" }) {
		return nil
	}
	// The informer may not have seen yet what was written a moment ago.
	fn, err := client.Get[*minik8s.Function](ctx, t.of.client, client.Key{Kind: api.Functions, Namespace: key.Namespace, Name: key.Name})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var soonest time.Time
	for i := range fn.Spec.Triggers {
		x := &fn.Spec.Triggers[i]
		if x.Schedule == "" {
			continue
		}
		next, err := t.onTime(ctx, fn, x)
		if err != nil {
			return err
		}
		if !next.IsZero() && (soonest.IsZero() || next.Before(soonest)) {
			soonest = next
		}
	}
	if !soonest.IsZero() {
		t.loop.AddAfter(key, max(soonest.Sub(clock.Now()), 0))
	}
	return nil
}

// onTime makes the call of a schedule if its time has come, and returns the next time; a zero one: there is none.
func (t *triggers) onTime(ctx context.Context, fn *minik8s.Function, x *minik8s.FunctionTrigger) (time.Time, error) {
	schedule, err := validation.Schedule(x.Schedule, x.TimeZone)
	if err != nil {
		return time.Time{}, nil //nolint:nilerr // it was valid when it was written; nothing can be done
	}
	now := clock.Now()
	last := stateOf(fn, x.Name).LastTime
	if last == nil { // it is new: its times begin now
		return schedule.Next(now), t.note(ctx, fn, minik8s.FunctionTriggerStatus{Name: x.Name, LastTime: &metav1.Time{Time: now}})
	}
	due := plan.Due(schedule.Next, last.Time, now)
	if due.IsZero() {
		return schedule.Next(now), nil
	}
	if err := t.call(ctx, fn, x.Name, due.UTC().Format(time.RFC3339), []byte(x.Body), "text/plain; charset=utf-8"); err != nil {
		return time.Time{}, err
	}
	return schedule.Next(now), t.note(ctx, fn, minik8s.FunctionTriggerStatus{Name: x.Name, LastTime: &metav1.Time{Time: due}})
}

// call makes the call for an event, once.
func (t *triggers) call(ctx context.Context, fn *minik8s.Function, trigger, event string, body []byte, contentType string) error {
	sum := sha256.Sum256([]byte(string(fn.UID) + "\x00" + trigger + "\x00" + event))
	q := question{id: plan.TriggerPrefix + plan.Derived(fn.Name) + "." + trigger + "-" + hex.EncodeToString(sum[:8]), function: keyOf(fn), body: body, contentType: contentType, trace: traceFrom("")}
	err := t.of.accept(ctx, q, "trigger "+trigger+", "+event, metav1.NewTime(clock.Now()), nil)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func stateOf(fn *minik8s.Function, trigger string) minik8s.FunctionTriggerStatus {
	for _, s := range fn.Status.Triggers {
		if s.Name == trigger {
			return s
		}
	}
	return minik8s.FunctionTriggerStatus{}
}

// note writes how far a trigger has come, and drops what is said of triggers that are gone.
func (t *triggers) note(ctx context.Context, fn *minik8s.Function, state minik8s.FunctionTriggerStatus) error {
	for {
		now, err := client.Get[*minik8s.Function](ctx, t.of.client, client.KeyOf(fn))
		if apierrors.IsNotFound(err) || err == nil && now.UID != fn.UID {
			return nil
		}
		if err != nil {
			return err
		}
		next := now.DeepCopy()
		next.Status.Triggers = slices.DeleteFunc(next.Status.Triggers, func(s minik8s.FunctionTriggerStatus) bool {
			return s.Name == state.Name || !slices.ContainsFunc(next.Spec.Triggers, func(x minik8s.FunctionTrigger) bool { return x.Name == s.Name })
		})
		next.Status.Triggers = append(next.Status.Triggers, state)
		_, err = t.of.client.Update(ctx, next, client.WriteOptions{Subresource: api.StatusSubresource})
		if !apierrors.IsConflict(err) {
			return err
		}
	}
}

// watchFor has objects watched for those triggers of a function for which they are not yet.
func (t *triggers) watchFor(fn *minik8s.Function) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range fn.Spec.Triggers {
		x := fn.Spec.Triggers[i]
		id := followed{fn.UID, x.Name}
		if x.Object == nil || fn.DeletionTimestamp != nil || t.followers[id] != nil && apiequality.Semantic.DeepEqual(t.followers[id].what, *x.Object) {
			continue
		}
		if f := t.followers[id]; f != nil {
			f.stop()
		}
		f := &follower{key: keyOf(fn), what: *x.Object}
		t.followers[id] = f
		var ctx context.Context
		ctx, f.stop = context.WithCancel(context.Background())
		t.tasks.Go(func(run context.Context) error {
			defer context.AfterFunc(run, f.stop)()
			defer f.stop()
			t.follow(ctx, fn, x.Name, x.Object)
			return nil
		})
	}
}

// forget ends the watches for triggers that a function has no more. fn is nil if there is no such function.
func (t *triggers) forget(key loop.Key, fn *minik8s.Function) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, f := range t.followers {
		if f.key != key || fn != nil && fn.UID == id.function && fn.DeletionTimestamp == nil &&
			slices.ContainsFunc(fn.Spec.Triggers, func(x minik8s.FunctionTrigger) bool { return x.Name == id.trigger && x.Object != nil }) {
			continue
		}
		f.stop()
		delete(t.followers, id)
	}
}

// The pauses of a follower: after a watch that broke, and between two notes of how far it has come.
const (
	watchAgain = time.Second
	noteEvery  = time.Second
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
	f := &changes{t: t, fn: fn, trigger: trigger, what: what, kind: kind, selector: selector}
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

	revision string // up to which changes have their calls; empty: not known
	noted    string // what of it is in the function's status
}

// run follows the changes until the watch ends.
func (c *changes) run(ctx context.Context) error {
	if c.revision == "" {
		now, err := client.Get[*minik8s.Function](ctx, c.t.of.client, client.KeyOf(c.fn))
		if err != nil {
			return err
		}
		c.revision = stateOf(now, c.trigger).Revision
		c.noted = c.revision
	}
	if c.revision == "" { // it is new: what is there already is no change
		list, err := c.t.of.client.List(ctx, c.kind, client.ListOptions{Namespace: c.namespace, Labels: c.selector, Limit: 1})
		if err != nil {
			return err
		}
		c.revision = list.ResourceVersion
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
			c.revision = e.ResourceVersion
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
		if _, err := c.call(ctx, client.Modified, o, o.GetResourceVersion()); err != nil {
			return err
		}
	}
	c.revision = list.ResourceVersion
	return c.note(ctx)
}

func (c *changes) note(ctx context.Context) error {
	if c.noted == c.revision {
		return nil
	}
	err := c.t.note(ctx, c.fn, minik8s.FunctionTriggerStatus{Name: c.trigger, Revision: c.revision})
	if err == nil {
		c.noted = c.revision
	}
	return err
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
