package workflow

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/clock"
	"minik8s/internal/supervise"
	"minik8s/internal/workflow/asl"
)

// maxItems is how many items of a Map are worked on at a time, if it does not say fewer, as at AWS.
const maxItems = 40

// frame is a machine that is run: the run's own, or that of a branch.
type frame struct {
	branch  string
	item    any // the part of the context object that an item of a Map has; nil: none
	entered time.Time
}

// machine runs a machine from its first step on: those that are in the store are only read. The error of Go is that it cannot
// go on here.
func (x *run) machine(ctx context.Context, f frame, m *asl.Machine, input any) (any, *asl.Error, error) {
	state, tried := m.States[m.StartAt], map[int]int{}
	for at := (place{branch: f.branch}); ; at.number++ {
		step := x.past[at]
		if step == nil {
			var err error
			if step, err = x.leave(ctx, f, at, state, input, tried); err != nil {
				return nil, nil, err
			}
		}
		s := &step.Spec
		switch s.Event {
		case minik8s.StepRetried:
			tried[int(s.Retrier)]++
			if s.Until != nil {
				if err := sleep(ctx, s.Until.Sub(clock.Now())); err != nil {
					return nil, nil, err
				}
			}
		case minik8s.StepFailed:
			return nil, &asl.Error{Name: s.Error, Cause: s.Cause, Final: s.Final}, nil
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
			state, input, f.entered, tried = next, output, s.Time.Time, map[int]int{}
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
func (x *run) leave(ctx context.Context, f frame, at place, s *asl.State, input any, tried map[int]int) (*minik8s.WorkflowStep, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	spec := minik8s.WorkflowStepSpec{Branch: at.branch, Number: at.number, State: s.Name, Type: s.Type, Event: minik8s.StepSucceeded, Entered: metav1.NewMicroTime(f.entered)}
	key := string(x.object.UID) + "." + at.String()
	var failed *asl.Error
	var out outcome
	ends := at.branch == "" && (s.End || s.Type == asl.Succeed || s.Type == asl.Fail)
	if most, n := x.object.Status.MaxSteps, x.steps.Load(); n >= most || n == most-1 && !ends {
		failed = &asl.Error{Name: "Workflow.StepLimit", Cause: fmt.Sprintf("the run has had %d transitions and does not end; maxSteps says how many it may have", most), Final: true}
	} else {
		var err error
		if out, failed, err = x.do(ctx, f, at, s, input, &asl.Context{Object: x.context(f, s, tried), Random: key}); err != nil {
			return nil, err
		}
	}
	if failed == nil {
		if spec.Output.Raw, failed = encoded(out.output); failed == nil {
			spec.Next, spec.Instance, spec.Cold = out.next, out.instance, out.cold
			return x.commit(ctx, spec)
		}
	}
	spec.Error, spec.Cause, spec.Final = failed.Name, failed.Cause, failed.Final
	h, again := s.Handle(failed, input, tried, key)
	switch {
	case again != nil:
		spec.Event, spec.Error, spec.Cause = minik8s.StepFailed, again.Name, again.Cause
	case h.Again:
		until := metav1.NewMicroTime(clock.Now().Add(h.Delay))
		spec.Event, spec.Retrier, spec.Until, spec.Next = minik8s.StepRetried, int32(h.Retrier), &until, s.Name
	default:
		spec.Event, spec.Next = minik8s.StepCaught, h.Next
		if spec.Output.Raw, again = encoded(h.Output); again != nil {
			spec.Event, spec.Next, spec.Error, spec.Cause = minik8s.StepFailed, "", again.Name, again.Cause
		}
	}
	return x.commit(ctx, spec)
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
	effective, failed := s.Input(input, c)
	if failed != nil {
		return out, failed, nil
	}
	out.next = s.Following("")
	switch s.Type {
	case asl.Fail:
		return out, s.Failure(effective, c), nil
	case asl.Succeed:
		out.output, failed = s.PassOn(effective, c)
		return out, failed, nil
	case asl.Choice:
		if out.next, failed = s.Choose(effective, c); failed == nil {
			out.output, failed = s.PassOn(effective, c)
		}
		return out, failed, nil
	case asl.Wait:
		until, failed := s.Until(f.entered, effective, c)
		if failed == nil {
			if err := sleep(ctx, until.Sub(clock.Now())); err != nil {
				return out, nil, err
			}
			out.output, failed = s.PassOn(effective, c)
		}
		return out, failed, nil
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
		out.output, failed = s.Output(input, result, c)
	}
	return out, failed, err
}

// parallel runs the branches of a Parallel state.
func (x *run) parallel(ctx context.Context, f frame, at place, s *asl.State, effective any) (any, *asl.Error, error) {
	return x.sideBySide(ctx, len(s.Branches), len(s.Branches), func(ctx context.Context, i int) (any, *asl.Error, error) {
		return x.machine(ctx, frame{branch: below(at, i), item: f.item, entered: f.entered}, s.Branches[i], effective)
	})
}

// each runs the machine of a Map state for each item.
func (x *run) each(ctx context.Context, f frame, at place, s *asl.State, effective any, c *asl.Context) (any, *asl.Error, error) {
	items, failed := s.Items(effective, c)
	if failed != nil {
		return nil, failed, nil
	}
	most, failed := s.Concurrency(effective, c)
	if failed != nil {
		return nil, failed, nil
	}
	if most <= 0 || most > maxItems {
		most = maxItems
	}
	return x.sideBySide(ctx, len(items), most, func(ctx context.Context, i int) (any, *asl.Error, error) {
		b := frame{branch: below(at, i), entered: f.entered, item: map[string]any{"Item": map[string]any{"Index": int64(i), "Value": items[i]}}}
		own := &asl.Context{Object: x.context(b, s, nil), Random: c.Random + "/" + b.branch}
		input, failed := s.Item(effective, items[i], own)
		if failed != nil {
			return nil, failed, nil
		}
		return x.machine(ctx, b, s.Branches[0], input)
	})
}

// below is the name of a branch of the state whose step is at a place.
func below(at place, i int) string { return fmt.Sprintf("%s-%d", at, i) }

// sideBySide runs n machines, so many at a time, and lists their results. When one fails the others end.
func (x *run) sideBySide(ctx context.Context, n, most int, one func(ctx context.Context, i int) (any, *asl.Error, error)) (any, *asl.Error, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		mu     sync.Mutex
		failed *asl.Error
		broken error
		wg     sync.WaitGroup
	)
	results, room := make([]any, n), make(chan struct{}, most)
	for i := range n {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-room }()
			var result any
			var f *asl.Error
			err := supervise.Safe(func() (err error) {
				result, f, err = one(ctx, i)
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			results[i] = result
			if (f != nil || err != nil) && failed == nil && broken == nil {
				failed, broken = f, err
				cancel()
			}
		})
	}
	wg.Wait()
	switch {
	case failed != nil:
		e := *failed
		e.Branch = true
		return nil, &e, nil
	case broken != nil:
		return nil, nil, broken
	}
	return results, nil, ctx.Err()
}
