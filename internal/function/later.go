package function

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/controller/loop"
	"minik8s/internal/function/plan"
)

func callKey(c *minik8s.FunctionCall) loop.Key { return loop.Key{Namespace: c.Namespace, Name: c.Name} }

// kept is a FunctionCall that is under way in this process. It stays so when another master begins to lead: what an instance has begun
// counts.
type kept struct {
	uid    types.UID // empty: its object is about to be made
	cancel context.CancelFunc
	again  func() // is called at its end, if somebody has looked at the call meanwhile
}

// claim says that this process has a call under way from now on; false: it has one of that name. again is called once that has ended.
func (s *Server) claim(key loop.Key, uid types.UID, cancel context.CancelFunc, again func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.kept[key]; k != nil {
		if k.uid != uid && k.uid != "" && uid != "" { // it was deleted, and another one has its name
			k.cancel()
		}
		if again != nil {
			k.again = again
		}
		return false
	}
	s.kept[key] = &kept{uid: uid, cancel: cancel}
	return true
}

// made says what object a claimed call has.
func (s *Server) made(key loop.Key, uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[key].uid = uid
}

// unclaim says that a call is not under way any more.
func (s *Server) unclaim(key loop.Key) {
	s.mu.Lock()
	k := s.kept[key]
	delete(s.kept, key)
	s.mu.Unlock()
	k.cancel()
	if k.again != nil {
		k.again()
	}
}

// cancel ends a call whose object has been deleted.
func (s *Server) cancel(key loop.Key, uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.kept[key]; k != nil && k.uid == uid {
		k.cancel()
	}
}

// accept makes the object of a call that nobody waits for, and begins it: that is one write, after which the caller is told the call's name. done: it is
// under way since began, and its result comes there.
func (f *Controller) accept(ctx context.Context, q question, caller string, began metav1.Time, done <-chan result) error {
	c := &minik8s.FunctionCall{ObjectMeta: metav1.ObjectMeta{Namespace: q.function.Namespace, Name: q.id},
		Spec:   minik8s.FunctionCallSpec{Function: q.function.Name, Body: q.body, ContentType: q.contentType, Caller: caller, TraceParent: q.trace},
		Status: f.running(began)}
	key := callKey(c)
	counted, err := f.store.take(key, q.function, int64(len(q.body)))
	if err != nil {
		return err
	}
	run, cancel := context.WithCancel(context.Background())
	if !f.server.claim(key, "", cancel, nil) {
		if cancel(); counted {
			f.store.drop(key)
		}
		return apierrors.NewAlreadyExists(api.FunctionCalls.GR(), q.id)
	}
	made, err := f.make(ctx, c)
	if err != nil {
		f.store.drop(key)
		f.server.unclaim(key)
		return err
	}
	c = made
	f.server.made(key, c.UID)
	go f.carry(run, c, q, done)
	return nil
}

// running is the status of a call that this master begins.
func (f *Controller) running(began metav1.Time) minik8s.FunctionCallStatus {
	return minik8s.FunctionCallStatus{State: minik8s.CallRunning, StartTime: &began, Master: f.server.cfg.Master}
}

// makeLimit is how long the object of a call may take to be made. Its caller may have gone meanwhile.
const makeLimit = 15 * time.Second

// make makes the object of a call. Whether it is there when the answer to the write was lost, the store says: one that was taken for
// none would be begun a second time.
func (f *Controller) make(ctx context.Context, c *minik8s.FunctionCall) (*minik8s.FunctionCall, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), makeLimit)
	defer cancel()
	obj, err := f.client.Create(ctx, c, client.WriteOptions{})
	if err == nil {
		return obj.(*minik8s.FunctionCall), nil
	}
	if known := apierrors.ReasonForError(err); known != metav1.StatusReasonUnknown && !apierrors.IsServerTimeout(err) && !apierrors.IsTimeout(err) && !apierrors.IsServiceUnavailable(err) && !apierrors.IsInternalError(err) {
		return nil, err
	}
	have, gerr := client.Get[*minik8s.FunctionCall](ctx, f.client, client.KeyOf(c))
	if gerr != nil || have.Status.StartTime == nil || !have.Status.StartTime.Equal(c.Status.StartTime) || have.Spec.Caller != c.Spec.Caller || have.Spec.TraceParent != c.Spec.TraceParent {
		return nil, err
	}
	return have, nil
}

// carry makes a call that is claimed, or waits for its end, and writes how it went. Nobody waits for it: it ends with the process.
func (f *Controller) carry(ctx context.Context, c *minik8s.FunctionCall, q question, done <-chan result) {
	defer f.server.unclaim(callKey(c))
	if q.room == nil {
		q.room = &room{budget: f.server.under, key: q.function}
		defer q.room.free()
	}
	var r result
	if done != nil {
		r = <-done
	} else {
		r = f.dispatch.call(ctx, q)
	}
	r.trace = q.trace
	switch {
	case ctx.Err() != nil: // deleted
	case r.stopped && r.steps <= 1: // no function was called yet: the next leader may make the call also where it is not to be made twice
		f.giveUp(ctx, c)
	case r.stopped:
	default:
		finish(ctx, f.server.client, c, r, c.Status.StartTime)
	}
}

// giveUp says that a call has not begun, if it still is as this master wrote it: who was stopped for long may find that another one has it.
func (f *Controller) giveUp(ctx context.Context, c *minik8s.FunctionCall) {
	next := c.DeepCopy()
	next.Status = minik8s.FunctionCallStatus{}
	f.server.client.Update(ctx, next, client.WriteOptions{Subresource: api.StatusSubresource}) //nolint:errcheck // then who leads asks this master, and finds that it has it no more
}

// advance begins a FunctionCall that nobody has begun, and removes one whose time is over.
func (f *Controller) advance(ctx context.Context, key loop.Key) error {
	c, ok := f.calls.Get(key.Namespace, key.Name)
	if !ok || c.DeletionTimestamp != nil {
		return nil
	}
	if c.Status.Ended() {
		return f.expire(ctx, c)
	}
	return f.begin(ctx, key, c)
}

// begin carries out a call that nobody has begun, or that a lost master had.
func (f *Controller) begin(ctx context.Context, key loop.Key, c *minik8s.FunctionCall) error {
	run, cancel := context.WithCancel(context.Background())
	if !f.server.claim(key, c.UID, cancel, func() { f.calling.Add(key) }) {
		cancel()
		return nil
	}
	q := question{id: c.Name, function: loop.Key{Namespace: c.Namespace, Name: c.Spec.Function}, body: c.Spec.Body, contentType: c.Spec.ContentType, trace: traceFrom(c.Spec.TraceParent)}
	if c.Status.State == minik8s.CallRunning {
		go f.inherit(run, c, q)
		return nil
	}
	next := c.DeepCopy()
	next.Status = f.running(metav1.NewTime(clock.Now()))
	// The write is guarded: of two masters that both hold themselves for the leader one begins.
	obj, err := f.client.Update(ctx, next, client.WriteOptions{Subresource: api.StatusSubresource})
	if err != nil {
		f.server.unclaim(key)
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil // the informer is about to show it
		}
		return err
	}
	go f.carry(run, obj.(*minik8s.FunctionCall), q, nil)
	return nil
}

// triggerKept is how long calls by triggers are kept at least. An event that is met again after the loss of a master has the same call's
// name, and makes no second call while that is there.
const triggerKept = 10 * time.Minute

// expire removes a call that has ended when its time is over.
func (f *Controller) expire(ctx context.Context, c *minik8s.FunctionCall) error {
	keep := time.Hour
	if fn, known := f.functions.Get(c.Namespace, c.Spec.Function); known {
		keep = time.Duration(fn.Spec.ResultSeconds) * time.Second
	}
	if strings.HasPrefix(c.Name, plan.TriggerPrefix) {
		keep = max(keep, triggerKept)
	}
	end := c.Status.EndTime
	if end == nil { // somebody else has written the status
		end = &c.CreationTimestamp
	}
	if left := end.Add(keep).Sub(clock.Now()); left > 0 {
		f.calling.AddAfter(callKey(c), left)
		return nil
	}
	_, err := f.client.Delete(ctx, client.KeyOf(c), &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(c.UID))})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// never reports whether a function, or one that a chain comes to from it, is not to be called a second time.
func (f *Controller) never(key loop.Key) bool {
	seen := map[string]bool{"": true, minik8s.FunctionReturn: true}
	for next := []string{key.Name}; len(next) > 0; next = next[1:] {
		fn, known := f.functions.Get(key.Namespace, next[0])
		if seen[next[0]] || !known {
			continue
		}
		if fn.Spec.Retry == minik8s.RetryNever {
			return true
		}
		seen[next[0]] = true
		next = append(next, fn.Spec.Left, fn.Spec.Right)
	}
	return false
}

func writeStatus(ctx context.Context, cl client.Interface, c *minik8s.FunctionCall, s minik8s.FunctionCallStatus) error {
	next := c.DeepCopy()
	next.Status = s
	next.ResourceVersion = "" // the first end counts, whoever writes it
	_, err := cl.Update(ctx, next, client.WriteOptions{Subresource: api.StatusSubresource})
	return err
}

// finish writes how a call went, until it is written or the call has gone.
func finish(ctx context.Context, cl client.Interface, c *minik8s.FunctionCall, r result, start *metav1.Time) {
	s := statusOf(r, start)
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := writeStatus(ctx, cl, c, s)
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
			return
		}
		if apierrors.IsConflict(err) { // another call may have its name by now
			now, err := client.Get[*minik8s.FunctionCall](ctx, cl, client.KeyOf(c))
			if apierrors.IsNotFound(err) || err == nil && now.UID != c.UID {
				return
			}
		}
		if apierrors.IsRequestEntityTooLargeError(err) && s.Fault == "" { // with the argument
			s.State, s.Fault, s.ContentType = minik8s.CallFailed, minik8s.FaultFunction, "text/plain; charset=utf-8"
			s.Result = []byte("argument and result are more together than the store takes")
			continue
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// statusOf is a result as a status.
func statusOf(r result, start *metav1.Time) minik8s.FunctionCallStatus {
	end := metav1.NewTime(clock.Now())
	s := minik8s.FunctionCallStatus{State: minik8s.CallSucceeded, Fault: r.fault, StartTime: start, EndTime: &end, Function: r.function, Instance: r.instance,
		Queued: &metav1.Duration{Duration: r.queued.Round(time.Microsecond)}, Cold: r.cold, Trace: traceID(r.trace), Steps: r.steps, Result: r.body, ContentType: r.contentType}
	if r.fault != "" {
		s.State = minik8s.CallFailed
	}
	if len(s.Result) > maxKept {
		s.State, s.Fault, s.ContentType = minik8s.CallFailed, minik8s.FaultFunction, "text/plain; charset=utf-8"
		s.Result = []byte("the result has more bytes than can be kept: one that somebody waits for may have more")
	}
	return s
}

// maxKept is what an argument or a result may have that is kept, in bytes: it goes into the store, in base64.
const maxKept = 768 << 10
