package workflow

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/controller/owner"
	"minik8s/internal/supervise"
	"minik8s/internal/workflow/asl"
)

// place is where a step is in its run.
type place struct {
	branch string
	number int64
}

func placeOf(s *minik8s.WorkflowStep) place { return place{s.Spec.Branch, s.Spec.Number} }

func (p place) String() string {
	if p.branch == "" {
		return strconv.FormatInt(p.number, 10)
	}
	return p.branch + "." + strconv.FormatInt(p.number, 10)
}

// run is a run that is under way here.
type run struct {
	w      *Controller
	object *minik8s.WorkflowRun
	stop   context.CancelCauseFunc
	past   map[place]*minik8s.WorkflowStep // steps from before; nothing is added to it
	read   bool                            // past is complete
	input  any                             // the run's, for the context object
	steps  atomic.Int64
}

// stepName is the name of a step: the place in the run, and of the UID enough to tell it from those of an older run of the name.
func stepName(r *minik8s.WorkflowRun, at place) string {
	return fmt.Sprintf("%s.%s.%s", r.Name, r.UID[:min(8, len(r.UID))], at)
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
	if r.Status.State == "" {
		begun, err := x.begin(ctx)
		if err != nil || begun == nil {
			return err == nil
		}
		x.object, r = begun, begun
	} else if err := x.recall(ctx); err != nil {
		return false
	}
	x.steps.Store(int64(len(x.past)))
	m, errs := asl.Parse(r.Status.Definition.Raw, nil)
	if len(errs) > 0 {
		return x.finish(ctx, minik8s.RunFailed, nil, &asl.Error{Name: asl.ErrRuntime, Cause: errs.ToAggregate().Error()})
	}
	input, err := asl.Decode(r.Spec.Input.Raw)
	if err != nil {
		return x.finish(ctx, minik8s.RunFailed, nil, &asl.Error{Name: asl.ErrRuntime, Cause: "the input is not JSON: " + err.Error()})
	}
	x.input = input
	if m.Timeout > 0 {
		var cancel context.CancelFunc
		of, cancel = context.WithTimeoutCause(of, r.Status.StartTime.Add(m.Timeout).Sub(clock.Now()), errLate)
		defer cancel()
	}
	output, failed, err := x.machine(of, frame{entered: r.Status.StartTime.Time}, m, input)
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
	case cause == errCancelled:
		return x.finish(ctx, minik8s.RunCancelled, nil, nil)
	case cause == errDeleted:
		return true
	case cause == errLate:
		return x.finish(ctx, minik8s.RunTimedOut, nil, &asl.Error{Name: asl.ErrTimeout, Cause: fmt.Sprintf("the run has not ended within the %v of TimeoutSeconds", m.Timeout)})
	}
	return false
}

var errLate = fmt.Errorf("the run has not ended in time")

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
	}
	made, err := x.w.client.Update(ctx, next, client.WriteOptions{Subresource: api.StatusSubresource})
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
	all, _, err := client.All[*minik8s.WorkflowStep](ctx, x.w.client, api.WorkflowSteps, client.ListOptions{Namespace: x.object.Namespace, Fields: fields.OneTermEqualSelector("spec.run", x.object.Name)})
	if err != nil {
		return err
	}
	for _, s := range all {
		if ownerOf(s) == x.object.UID {
			x.past[placeOf(s)] = s
		}
	}
	return nil
}

// finish writes how a run has ended, until that is written or the run has gone. It returns false when ctx ends first.
func (x *run) finish(ctx context.Context, state string, output []byte, failed *asl.Error) bool {
	next, now := x.object.DeepCopy(), metav1.NewMicroTime(clock.Now())
	next.ResourceVersion = "" // nobody else writes the status of a run that has begun, and one that has ended is not changed
	s := &next.Status
	s.State, s.EndTime, s.Output, s.Steps = state, &now, minik8s.JSON{Raw: output}, x.steps.Load()
	if failed != nil {
		s.Error, s.Cause = failed.Name, shortened(failed.Cause)
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		_, err := x.w.client.Update(ctx, next, client.WriteOptions{Subresource: api.StatusSubresource})
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
			return true
		}
		if apierrors.IsRequestEntityTooLargeError(err) && len(s.Output.Raw) > 0 { // with the definition and the input
			s.State, s.Output, s.Error, s.Cause = minik8s.RunFailed, minik8s.JSON{}, asl.ErrDataLimit, "definition, input and output are more together than the store takes"
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

// maxCause is what is kept of the text of an error, in bytes: its end, where a traceback says what it is.
const maxCause = 32 << 10

func shortened(cause string) string {
	if len(cause) > maxCause {
		return "..." + cause[len(cause)-maxCause:]
	}
	return cause
}

// commit makes a step. If there is one in its place it is that which counts, and it is returned.
func (x *run) commit(ctx context.Context, spec minik8s.WorkflowStepSpec) (*minik8s.WorkflowStep, error) {
	r := x.object
	spec.Run, spec.Time, spec.Cause = r.Name, metav1.NewMicroTime(clock.Now()), shortened(spec.Cause)
	s := &minik8s.WorkflowStep{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: stepName(r, place{spec.Branch, spec.Number}),
		OwnerReferences: []metav1.OwnerReference{owner.Ref(r)}}, Spec: spec}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		made, err := x.w.client.Create(ctx, s, client.WriteOptions{})
		if apierrors.IsAlreadyExists(err) {
			made, err = x.w.client.Get(ctx, client.KeyOf(s))
		}
		if err == nil {
			x.steps.Add(1)
			return made.(*minik8s.WorkflowStep), nil
		}
		if apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) {
			return nil, err
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

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
