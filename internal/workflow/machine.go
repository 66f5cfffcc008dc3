package workflow

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/clock"
	"minik8s/internal/workflow/asl"
)

// frame is a machine that is run: the run's own, or that of a branch.
type frame struct {
	branch  string
	item    any       // the part of the context object that an item of a Map has; nil: none
	entered time.Time // when its state was entered
	began   time.Time // when that state was begun: as entered, or as it was tried again
	before  bool      // another master may have begun it: what led to it was in the store when this one took over the run
}

// machine runs a machine, from where the steps from before have left it: those are only read. The error of Go is that it cannot go on here.
func (x *run) machine(ctx context.Context, f frame, m *asl.Machine, input any) (any, *asl.Error, error) {
	state, tried := m.States[m.StartAt], map[int]int{}
	for at := (place{f.branch, x.past.first[f.branch]}); ; at.number++ {
		step := x.past.steps[at]
		before := step != nil
		if !before {
			var err error
			if step, err = x.leave(ctx, f, at, state, input, tried); err != nil {
				return nil, nil, err
			}
		}
		f.before = before
		s := &step.Spec
		switch s.Event {
		case minik8s.StepRetried:
			tried[int(s.Retrier)]++
			f.began = s.Time.Time
			if s.Until != nil {
				f.began = s.Until.Time
				if err := sleep(ctx, s.Until.Sub(clock.Now())); err != nil {
					return nil, nil, err
				}
			}
		case minik8s.StepFailed:
			return nil, &asl.Error{Name: s.Error, Cause: s.Cause}, nil
		default:
			output, err := asl.Decode(s.Output.Raw)
			if err != nil {
				return nil, nil, fmt.Errorf("step %s: %w", step.Name, err)
			}
			if s.Next == "" {
				return output, nil, nil
			}
			next := m.States[s.Next]
			if next == nil {
				return nil, nil, fmt.Errorf("step %s: there is no state %s", step.Name, s.Next)
			}
			state, input, f.entered, f.began, tried = next, output, s.Time.Time, s.Time.Time, map[int]int{}
		}
	}
}

// outcome is what a state has come to.
type outcome struct {
	output   any
	next     string
	instance string
	cold     bool
}

// leave does what a state does and commits the step out of it.
func (x *run) leave(ctx context.Context, f frame, at place, s *asl.State, input any, tried map[int]int) (step *minik8s.WorkflowStep, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	reserved := false
	reserve := func() error {
		err := x.reserve(at.branch == "" && s.MayEnd())
		reserved = err == nil
		return err
	}
	defer func() {
		if reserved && err != nil {
			x.steps.Add(-1)
		}
	}()
	if len(s.Branches) == 0 { // before anything is called
		if err := reserve(); err != nil {
			return nil, err
		}
	}
	spec, err := x.transition(ctx, f, at, s, input, tried)
	if err != nil {
		return nil, err
	}
	if !reserved { // what has branches comes after them
		if err := reserve(); err != nil {
			return nil, err
		}
	}
	return x.commit(ctx, spec)
}

// transition does what a state does, and says what becomes of it.
func (x *run) transition(ctx context.Context, f frame, at place, s *asl.State, input any, tried map[int]int) (minik8s.WorkflowStepSpec, error) {
	spec := minik8s.WorkflowStepSpec{Branch: at.branch, Number: at.number, State: s.Name, Type: s.Type, Event: minik8s.StepSucceeded, Entered: metav1.NewMicroTime(f.entered)}
	key := string(x.object.UID) + "." + at.String()
	out, failed, err := x.do(ctx, f, at, s, input, &asl.Context{Object: x.context(f, s, tried), Random: key})
	if err != nil {
		return spec, err
	}
	if failed == nil {
		spec.Output.Raw, failed, err = evaluate(ctx, x, func() ([]byte, *asl.Error) { return encoded(out.output) })
		if err != nil {
			return spec, err
		}
		if failed == nil {
			spec.Next, spec.Instance, spec.Cold = out.next, out.instance, out.cold
			return spec, nil
		}
	}
	failed = kept(failed)
	spec.Error, spec.Cause = failed.Name, failed.Cause
	var h asl.Handling
	caught, again, err := evaluate(ctx, x, func() (output []byte, again *asl.Error) {
		if h, again = s.Handle(failed, input, tried, key); again != nil || h.Again {
			return nil, again
		}
		return encoded(h.Output)
	})
	switch {
	case err != nil:
		return spec, err
	case again != nil:
		spec.Event, spec.Error, spec.Cause = minik8s.StepFailed, again.Name, again.Cause
	case h.Again:
		until := metav1.NewMicroTime(clock.Now().Add(h.Delay))
		spec.Event, spec.Retrier, spec.Until, spec.Next = minik8s.StepRetried, int32(h.Retrier), &until, s.Name
	default:
		spec.Event, spec.Next, spec.Output.Raw = minik8s.StepCaught, h.Next, caught
	}
	return spec, nil
}

// evaluate does a part of what a state says about its data. Each may look at as many values as package asl lets it, and may have made them, too: so
// there are no more at a time, of all runs, than there are processors to do them. What waits meanwhile, for a function or for a time, is not in one.
func evaluate[T any](ctx context.Context, x *run, do func() (T, *asl.Error)) (out T, failed *asl.Error, err error) {
	select {
	case x.w.evaluations <- struct{}{}:
	case <-ctx.Done():
		return out, nil, ctx.Err()
	}
	defer func() { <-x.w.evaluations }()
	out, failed = do()
	return out, failed, nil
}

func encoded(v any) ([]byte, *asl.Error) {
	data, err := asl.Encode(v)
	switch {
	case err != nil:
		return nil, &asl.Error{Name: asl.ErrRuntime, Cause: err.Error()}
	case len(data) > asl.MaxData:
		return nil, &asl.Error{Name: asl.ErrDataLimit, Cause: fmt.Sprintf("the state would pass on %d bytes, and may %d", len(data), asl.MaxData)}
	}
	return data, nil
}

// context is the context object.
func (x *run) context(f frame, s *asl.State, tried map[int]int) map[string]any {
	retries := int64(0)
	for _, n := range tried {
		retries += int64(n)
	}
	r := x.object
	out := map[string]any{
		"Execution":    map[string]any{"Id": string(r.UID), "Name": r.Name, "Input": x.input, "StartTime": r.Status.StartTime.UTC().Format(time.RFC3339Nano)},
		"State":        map[string]any{"Name": s.Name, "EnteredTime": f.entered.UTC().Format(time.RFC3339Nano), "RetryCount": retries},
		"StateMachine": map[string]any{"Id": r.Namespace + "/" + r.Spec.Workflow, "Name": r.Spec.Workflow},
	}
	if f.item != nil {
		out["Map"] = f.item
	}
	return out
}

// do does what a state does.
func (x *run) do(ctx context.Context, f frame, at place, s *asl.State, input any, c *asl.Context) (out outcome, failed *asl.Error, err error) {
	effective, failed, err := evaluate(ctx, x, func() (any, *asl.Error) { return s.Input(input, c) })
	if failed != nil || err != nil {
		return out, failed, err
	}
	out.next = s.Following("")
	passOn := func() (any, *asl.Error) { return s.PassOn(effective, c) }
	switch s.Type {
	case asl.Fail:
		_, failed, err = evaluate(ctx, x, func() (any, *asl.Error) { return nil, s.Failure(effective, c) })
		return out, failed, err
	case asl.Choice:
		if out.next, failed, err = evaluate(ctx, x, func() (string, *asl.Error) { return s.Choose(effective, c) }); failed != nil || err != nil {
			return out, failed, err
		}
		fallthrough
	case asl.Succeed:
		out.output, failed, err = evaluate(ctx, x, passOn)
		return out, failed, err
	case asl.Wait:
		until, failed, err := evaluate(ctx, x, func() (time.Time, *asl.Error) { return s.Until(f.entered, effective, c) })
		if failed != nil || err != nil {
			return out, failed, err
		}
		if err := sleep(ctx, until.Sub(clock.Now())); err != nil {
			return out, nil, err
		}
		out.output, failed, err = evaluate(ctx, x, passOn)
		return out, failed, err
	}
	var result any
	switch s.Type {
	case asl.Pass:
		result = s.PassResult(effective)
	case asl.Task:
		result, failed, err = x.task(ctx, s, effective, c, &out)
	case asl.Parallel:
		result, failed, err = x.parallel(ctx, f, at, s, effective)
	case asl.Map:
		result, failed, err = x.each(ctx, f, at, s, effective, c)
	}
	if failed == nil && err == nil {
		out.output, failed, err = evaluate(ctx, x, func() (any, *asl.Error) { return s.Output(input, result, c) })
	}
	return out, failed, err
}
