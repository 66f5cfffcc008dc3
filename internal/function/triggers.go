package function

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"sync"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	var failed error
	for i := range fn.Spec.Triggers {
		x := &fn.Spec.Triggers[i]
		if x.Schedule == "" {
			continue
		}
		next, err := t.onTime(ctx, fn, x)
		failed = errors.Join(failed, err) // the others have their times all the same
		if !next.IsZero() && (soonest.IsZero() || next.Before(soonest)) {
			soonest = next
		}
	}
	if !soonest.IsZero() {
		t.loop.AddAfter(key, max(soonest.Sub(clock.Now()), 0))
	}
	return failed
}

// clocksDiffer is how far the clocks of two masters may be apart. A time further ahead is not waited for.
const clocksDiffer = time.Minute

// onTime makes the call of a schedule if its time has come, and returns the next time; a zero one: there is none.
func (t *triggers) onTime(ctx context.Context, fn *minik8s.Function, x *minik8s.FunctionTrigger) (time.Time, error) {
	schedule, err := validation.Schedule(x.Schedule, x.TimeZone)
	if err != nil {
		return time.Time{}, nil //nolint:nilerr // it was valid when it was written; nothing can be done
	}
	now := clock.Now()
	last := stateOf(fn, x.Name).LastTime
	if last == nil || last.After(now.Add(clocksDiffer)) { // it is new, or the clock was wrong once: its times begin now
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
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil
	case apierrors.IsInvalid(err), apierrors.IsRequestEntityTooLargeError(err): // nor will it be taken another time
		t.of.log.Warn("an event is not told to a function", "function", keyOf(fn), "trigger", trigger, "event", event, "error", err)
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

// note writes how far a trigger has come, and drops what is said of triggers that are gone. also changes what else is in the status.
func (t *triggers) note(ctx context.Context, fn *minik8s.Function, state minik8s.FunctionTriggerStatus, also ...func(*minik8s.FunctionStatus)) error {
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
		for _, change := range also {
			change(&next.Status)
		}
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
