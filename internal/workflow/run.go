package workflow

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/supervise"
	"minik8s/internal/workflow/asl"
)

// run is a run that is under way here.
type run struct {
	w      *Controller
	object *minik8s.WorkflowRun
	stop   context.CancelCauseFunc
	of     context.Context // ends with the run, and not with one of its branches
	past   *history        // steps from before; nothing is added to it
	read   bool            // past is complete
	input  any             // the run's, for the context object
	steps  atomic.Int64    // committed, or about to be
	stored atomic.Int64    // bytes of their data
	live   chan struct{}   // a place for each branch that has a goroutine of its own
}

// newRun is a run with the steps that it has had; nil: they are still to be read, if it has any.
func newRun(w *Controller, r *minik8s.WorkflowRun, past *history) *run {
	x := &run{w: w, object: r, live: make(chan struct{}, maxLive)}
	x.knows(past)
	return x
}

// knows takes in the steps from before.
func (x *run) knows(past *history) {
	x.read = past != nil
	if x.past = past; past == nil {
		x.past = newHistory()
	}
	x.steps.Store(x.past.count)
	x.stored.Store(x.past.stored)
}

// guarded is run. A mistake of ours ends this run, and no other.
func (x *run) guarded(ctx, of context.Context) (done bool) {
	err := supervise.Safe(func() error {
		done = x.run(ctx, of)
		return nil
	})
	if err != nil {
		x.w.log.Error("a run of a workflow panicked", "run", keyOf(x.object).String(), "error", err)
		return x.finish(ctx, minik8s.RunFailed, nil, &asl.Error{Name: asl.ErrRuntime, Cause: "a mistake of minik8s: " + err.Error()})
	}
	return done
}

// run runs it to its end, and returns false if it comes to none here. of ends with ctx, or when the run is to end.
func (x *run) run(ctx, of context.Context) bool {
	r := x.object
	before := r.Status.State != ""
	if !before {
		begun, err := x.begin(ctx)
		if err != nil || begun == nil {
			return err == nil
		}
		x.object, r = begun, begun
	} else if err := x.recall(ctx); err != nil {
		return false
	}
	m, errs := asl.Parse(r.Status.Definition.Raw, nil)
	if len(errs) > 0 {
		return x.finish(ctx, minik8s.RunFailed, nil, &asl.Error{Name: asl.ErrRuntime, Cause: errs.ToAggregate().Error()})
	}
	input, err := asl.Decode(r.FirstInput().Raw)
	if err != nil {
		return x.finish(ctx, minik8s.RunFailed, nil, &asl.Error{Name: asl.ErrRuntime, Cause: "the input is not JSON: " + err.Error()})
	}
	x.input = input
	if m.Timeout > 0 {
		var cancel context.CancelFunc
		of, cancel = context.WithTimeoutCause(of, r.Status.StartTime.Add(m.Timeout).Sub(clock.Now()), errLate)
		defer cancel()
	}
	x.of = of
	output, failed, err := x.machine(of, frame{entered: r.Status.StartTime.Time, began: r.Status.StartTime.Time, before: before}, m, input)
	var bound *asl.Error
	switch cause := context.Cause(of); {
	case err == nil && failed == nil:
		data, err := asl.Encode(output)
		if err != nil {
			failed = &asl.Error{Name: asl.ErrRuntime, Cause: err.Error()}
			return x.finish(ctx, minik8s.RunFailed, nil, failed)
		}
		return x.finish(ctx, minik8s.RunSucceeded, data, nil)
	case err == nil:
		return x.finish(ctx, minik8s.RunFailed, nil, failed)
	case of.Err() == nil: // what would come again
		return x.finish(ctx, minik8s.RunFailed, nil, &asl.Error{Name: asl.ErrRuntime, Cause: err.Error()})
	case errors.As(cause, &bound):
		return x.finish(ctx, minik8s.RunFailed, nil, bound)
	case cause == errCancelled:
		return x.finish(ctx, minik8s.RunCancelled, nil, nil)
	case cause == errDeleted:
		return true
	case cause == errLate:
		return x.finish(ctx, minik8s.RunTimedOut, nil, &asl.Error{Name: asl.ErrTimeout, Cause: fmt.Sprintf("the run has not ended within the %v of TimeoutSeconds", m.Timeout)})
	}
	return false
}

var errLate = errors.New("the run has not ended in time")

// begin notes what a run begins with. It returns nil if the run has ended with that.
func (x *run) begin(ctx context.Context) (*minik8s.WorkflowRun, error) {
	r, now := x.object, metav1.NewMicroTime(clock.Now())
	next := r.DeepCopy()
	next.Status = minik8s.WorkflowRunStatus{State: minik8s.RunRunning, StartTime: &now}
	wf, err := client.Get[*minik8s.Workflow](ctx, x.w.client, client.Key{Kind: api.Workflows, Namespace: r.Namespace, Name: r.Spec.Workflow})
	s := &next.Status
	switch {
	case apierrors.IsNotFound(err):
		s.State, s.EndTime, s.Error, s.Cause = minik8s.RunFailed, &now, "Workflow.NotFound", "there is no workflow "+r.Spec.Workflow
	case err != nil:
		return nil, err
	case r.Spec.Cancel:
		s.State, s.EndTime = minik8s.RunCancelled, &now
	default:
		s.Definition, s.MaxSteps, s.RunSeconds = wf.Spec.Definition, wf.Spec.MaxSteps, wf.Spec.RunSeconds
		if r.Spec.Input.IsZero() {
			s.Input = wf.Spec.Params
		}
	}
	made, err := x.w.client.Update(ctx, next, client.WriteOptions{Subresource: api.StatusSubresource})
	if apierrors.IsRequestEntityTooLargeError(err) { // nor would it be taken another time
		next.Status = minik8s.WorkflowRunStatus{State: minik8s.RunFailed, StartTime: &now, EndTime: &now, RunSeconds: s.RunSeconds,
			Error: asl.ErrDataLimit, Cause: "definition and input are more together than the store takes"}
		made, err = x.w.client.Update(ctx, next, client.WriteOptions{Subresource: api.StatusSubresource})
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil || s.State != minik8s.RunRunning {
		return nil, err
	}
	return made.(*minik8s.WorkflowRun), nil
}

// recall reads the steps of a run that has begun before.
func (x *run) recall(ctx context.Context) error {
	if x.read {
		return nil
	}
	past := newHistory()
	opts := client.ListOptions{Namespace: x.object.Namespace, Fields: fields.OneTermEqualSelector("spec.run", x.object.Name)}
	err := eachStep(ctx, x.w.client, opts, func(s *minik8s.WorkflowStep) {
		if ownerOf(s) == x.object.UID {
			past.add(s)
		}
	})
	if err != nil {
		return err
	}
	x.knows(past)
	return nil
}

// finish writes how a run has ended, until that is written or the run has gone. It returns false when ctx ends first.
func (x *run) finish(ctx context.Context, state string, output []byte, failed *asl.Error) bool {
	now := metav1.NewMicroTime(clock.Now())
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		next := x.object.DeepCopy()
		s := &next.Status
		s.State, s.EndTime, s.Output, s.Steps = state, &now, minik8s.JSON{Raw: output}, x.steps.Load()
		if failed != nil {
			failed = kept(failed)
			s.Error, s.Cause = failed.Name, failed.Cause
		}
		_, err := x.w.client.Update(ctx, next, client.WriteOptions{Subresource: api.StatusSubresource})
		switch {
		case err == nil, apierrors.IsNotFound(err), apierrors.IsInvalid(err):
			return true
		case apierrors.IsConflict(err): // somebody else has written something of it, as a label, or it was deleted and made anew
			newest, err := client.Get[*minik8s.WorkflowRun](ctx, x.w.client, client.KeyOf(x.object))
			switch {
			case apierrors.IsNotFound(err), err == nil && newest.UID != x.object.UID:
				return true
			case err == nil:
				x.object = newest
				continue
			}
		case apierrors.IsRequestEntityTooLargeError(err) && len(output) > 0: // with the definition and the input
			state, output, failed = minik8s.RunFailed, nil, &asl.Error{Name: asl.ErrDataLimit, Cause: "definition, input and output are more together than the store takes"}
			continue
		case apierrors.IsRequestEntityTooLargeError(err) && s.Cause != "":
			failed = &asl.Error{Name: failed.Name}
			continue
		}
		if sleep(ctx, pause) != nil {
			return false
		}
	}
}

// Pauses between tries of a write that the store has not taken.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 5 * time.Second
)

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
