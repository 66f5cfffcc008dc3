package function

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/controller/loop"
)

func callKey(c *minik8s.FunctionCall) loop.Key { return loop.Key{Namespace: c.Namespace, Name: c.Name} }

// advance begins a FunctionCall that nobody has begun, and removes one whose time is over.
func (f *Controller) advance(ctx context.Context, key loop.Key) error {
	c, ok := f.calls.Get(key.Namespace, key.Name)
	if !ok || c.DeletionTimestamp != nil {
		return nil
	}
	fn, known := f.functions.Get(c.Namespace, c.Spec.Function)
	if c.Status.Ended() {
		keep := time.Hour
		if known {
			keep = time.Duration(fn.Spec.ResultSeconds) * time.Second
		}
		if left := c.Status.EndTime.Add(keep).Sub(clock.Now()); left > 0 {
			f.calling.AddAfter(key, left)
			return nil
		}
		_, err := f.client.Delete(ctx, client.KeyOf(c), &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(c.UID))})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil
		}
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running[key] != nil || f.server.owns(c.Name) {
		return nil
	}
	began := metav1.NewTime(clock.Now())
	run, cancel := context.WithCancel(ctx)
	f.running[key] = cancel
	f.tasks.Go(func(context.Context) error {
		defer func() {
			f.mu.Lock()
			delete(f.running, key)
			f.mu.Unlock()
			cancel()
		}()
		var r result
		if c.Status.State == minik8s.CallRunning && known && fn.Spec.Retry == minik8s.RetryNever {
			r = failed(minik8s.FaultPlatform, 502, "the master that had the call was lost; the function is not to be called again (retry: Never)")
		} else {
			if c.Status.State == "" {
				if err := f.note(run, c, minik8s.FunctionCallStatus{State: minik8s.CallRunning, StartTime: &began}); err != nil {
					if !apierrors.IsNotFound(err) {
						f.calling.AddAfter(key, time.Second)
					}
					return nil
				}
			}
			trace := traceFrom(c.Spec.TraceParent)
			r = f.dispatch.call(run, question{id: c.Name, function: loop.Key{Namespace: c.Namespace, Name: c.Spec.Function}, body: c.Spec.Body, contentType: c.Spec.ContentType, trace: trace})
			r.trace = trace
		}
		if run.Err() != nil || r.stopped {
			return nil // deleted, or another master goes on
		}
		start := c.Status.StartTime
		if start == nil {
			start = &began
		}
		f.finish(run, c, r, start)
		return nil
	})
	return nil
}

// cancelCall ends a FunctionCall that has been deleted.
func (f *Controller) cancelCall(key loop.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if cancel := f.running[key]; cancel != nil {
		cancel()
	}
}

// note writes a call's status.
func (f *Controller) note(ctx context.Context, c *minik8s.FunctionCall, s minik8s.FunctionCallStatus) error {
	return writeStatus(ctx, f.client, c, s)
}

func writeStatus(ctx context.Context, cl client.Interface, c *minik8s.FunctionCall, s minik8s.FunctionCallStatus) error {
	next := c.DeepCopy()
	next.Status = s
	next.ResourceVersion = "" // nobody else writes it
	_, err := cl.Update(ctx, next, client.WriteOptions{Subresource: api.StatusSubresource})
	return err
}

// finish writes how a call went, until it is written or the call has gone.
func (f *Controller) finish(ctx context.Context, c *minik8s.FunctionCall, r result, start *metav1.Time) {
	finish(ctx, f.client, c, r, start)
}

func finish(ctx context.Context, cl client.Interface, c *minik8s.FunctionCall, r result, start *metav1.Time) {
	s := statusOf(r, start)
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := writeStatus(ctx, cl, c, s)
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
			return
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

// maxKept is what a result may have that is kept, in bytes: it goes into the store, in base64.
const maxKept = 768 << 10
