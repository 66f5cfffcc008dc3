package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	ct "minik8s/internal/controller/controllertest"
	"minik8s/internal/workflow/asl"
)

const catchAll = `"Retry":[{"ErrorEquals":["States.ALL"]}],"Catch":[{"ErrorEquals":["States.ALL"],"Next":"z"}],`

// Branches side by side take no more transitions than the run has, and what has been called is committed.
func TestBranchesShareTheSteps(t *testing.T) {
	w := newWorld(t)
	w.begin()
	w.workflow("wide", machine("m", `"m":{"Type":"Map",`+catchAll+`"End":true,"ItemProcessor":`+machine("a", `"a":`+task("odd", `"ResultPath":"$.x","Next":"b"`), `"b":{"Type":"Pass","Next":"a2"}`, `"a2":{"Type":"Choice","Choices":[{"Variable":"$.stop","IsPresent":true,"Next":"e"}],"Default":"a"}`, `"e":{"Type":"Succeed"}`)+`}`, `"z":{"Type":"Succeed"}`),
		func(s *minik8s.WorkflowSpec) { s.MaxSteps = 100 })
	w.start("r", "wide", `[`+strings.Repeat(`{"x":0},`, 39)+`{"x":0}]`)
	s := w.wait("r").Status
	steps := strings.Count(w.history("r"), "\n")
	if s.State != minik8s.RunFailed || s.Error != "Workflow.StepLimit" || steps > 100 || s.Steps != int64(steps) {
		t.Errorf("%s %s %s after %d steps, and %d are stored", s.State, s.Error, s.Cause, s.Steps, steps)
	}
	// No function is called whose step would be one too many: here as many would be called at a time.
	w.workflow("calls", machine("m", `"m":{"Type":"Map",`+catchAll+`"End":true,"ItemProcessor":`+machine("a", `"a":`+task("blocks", `"End":true`))+`}`, `"z":{"Type":"Succeed"}`),
		func(s *minik8s.WorkflowSpec) { s.MaxSteps = 20 })
	w.mu.Lock()
	clear(w.called)
	w.mu.Unlock()
	w.start("c", "calls", `[`+strings.Repeat(`0,`, 39)+`0]`)
	if s := w.wait("c").Status; s.Error != "Workflow.StepLimit" || s.Steps != 0 || len(w.called) > 19 {
		t.Errorf("%s %s after %d steps and %d calls", s.State, s.Error, s.Steps, len(w.called))
	}
}

// What a run keeps in the store has a bound, and nothing catches that.
func TestDataOfARun(t *testing.T) {
	w := newWorld(t)
	w.begin()
	w.workflow("fill", machine("p", `"p":{"Type":"Parallel",`+catchAll+`"End":true,"Branches":[`+machine("a", `"a":`+task("fill", `"Next":"b"`), `"b":{"Type":"Choice","Choices":[{"Variable":"$","IsNull":true,"Next":"c"}],"Default":"a"}`, `"c":{"Type":"Succeed"}`)+`]}`, `"z":{"Type":"Succeed"}`), nil)
	w.start("r", "fill", `1`)
	s := w.wait("r").Status
	if most := int64(maxStored / (200 << 10)); s.State != minik8s.RunFailed || s.Error != "Workflow.DataLimit" || s.Steps > most || s.Steps < most-2 {
		t.Errorf("%s %s %s after %d steps", s.State, s.Error, s.Cause, s.Steps)
	}
}

// Whoever names an error, what is kept of its name and its cause has bounds, and is counted. What is kept of a cause is what a catcher gets.
func TestDataOfErrors(t *testing.T) {
	w := newWorld(t)
	w.begin()
	branch := func(state string) string {
		return machine(state, `"`+state+`":{"Type":"Fail","ErrorPath":"$$.Execution.Input","CausePath":"$$.Execution.Input"}`)
	}
	w.workflow("named", machine("p", `"p":{"Type":"Parallel","Branches":[`+branch("f")+`],"Catch":[{"ErrorEquals":["States.ALL"],"ResultPath":null,"Next":"q"}],"End":true}`, `"q":{"Type":"Parallel","Branches":[`+branch("g")+`],"End":true}`), nil)
	w.start("r", "named", `"`+strings.Repeat("é", 50<<10)+`"`)
	s := w.wait("r").Status
	if want := strings.Repeat("é", minik8s.MaxErrorName/2); s.Error != want || len(s.Cause) > minik8s.MaxErrorCause || !strings.HasSuffix(s.Cause, "éé") {
		t.Errorf("the run ends with an error of %d bytes and a cause of %d", len(s.Error), len(s.Cause))
	}
	steps, _, err := client.All[*minik8s.WorkflowStep](w.Context(), w.Admin(), api.WorkflowSteps, client.ListOptions{})
	if err != nil || len(steps) != 4 {
		t.Fatalf("%d steps, %v", len(steps), err)
	}
	for _, s := range steps {
		if x := &s.Spec; len(x.Error) > minik8s.MaxErrorName || len(x.Cause) > minik8s.MaxErrorCause || dataOf(x) < int64(len(x.Output.Raw)+len(x.Error)+len(x.Cause)) {
			t.Errorf("step %s has an error of %d bytes and a cause of %d, and counts as %d", s.Name, len(x.Error), len(x.Cause), dataOf(x))
		}
	}
	w.workflow("long", machine("a", `"a":`+task("fails", `"Catch":[{"ErrorEquals":["States.TaskFailed"],"ResultPath":"$.e","Next":"b"}],"End":true`), `"b":{"Type":"Pass","OutputPath":"$.e.Error","End":true}`), nil)
	w.start("l", "long", `{}`)
	if s := w.wait("l").Status; s.State != minik8s.RunSucceeded || string(s.Output.Raw) != `"`+strings.Repeat("E", minik8s.MaxErrorName)+`"` {
		t.Errorf("an exception with a long name and a long message: %s %s %.300s %.300s", s.State, s.Error, s.Cause, s.Output.Raw)
	}
}

// A step counts as much when it was read again as when it was made.
func TestDataOfStoredSteps(t *testing.T) {
	w := newWorld(t)
	w.begin()
	w.workflow("w", machine("p", `"p":{"Type":"Parallel","Branches":[`+machine("a", `"a":{"Type":"Pass","Next":"b"}`, `"b":`+task("garbage", `"End":true`))+`],"End":true}`), nil)
	w.start("r", "w", `"<é&>\u0001\u2028"`)
	w.wait("r")
	steps, _, err := client.All[*minik8s.WorkflowStep](w.Context(), w.Admin(), api.WorkflowSteps, client.ListOptions{})
	if err != nil || len(steps) != 3 {
		t.Fatalf("%d steps, %v", len(steps), err)
	}
	for _, s := range steps {
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		again := s.DeepCopy()
		if err := json.Unmarshal(data, again); err != nil {
			t.Fatal(err)
		}
		made := s.Spec
		if !s.Spec.Output.IsZero() {
			v, err := asl.Decode(s.Spec.Output.Raw)
			if err != nil {
				t.Fatal(err)
			}
			if made.Output.Raw, err = asl.Encode(v); err != nil { // as the run has made it
				t.Fatal(err)
			}
		}
		if a, b := dataOf(&made), dataOf(&again.Spec); a != b || a < 30 || !utf8.ValidString(s.Spec.Cause) {
			t.Errorf("step %s counts as %d, and later as %d", s.Name, a, b)
		}
	}
}

// creating is a client whose creations are seen.
type creating struct {
	client.Interface
	create func(ctx context.Context, obj api.Object) (api.Object, error)
}

func (c creating) Create(ctx context.Context, obj api.Object, _ client.WriteOptions) (api.Object, error) {
	return c.create(ctx, obj)
}

func historyOf(steps ...*minik8s.WorkflowStep) *history {
	h := newHistory()
	for _, s := range steps {
		h.add(s)
	}
	return h
}

// Of a run that is taken over only that is kept from which it goes on, and all of it counts.
func TestHistory(t *testing.T) {
	var steps []*minik8s.WorkflowStep
	add := func(branch string, number int64, event, next string) {
		steps = append(steps, &minik8s.WorkflowStep{Spec: minik8s.WorkflowStepSpec{Branch: branch, Number: number, Event: event, Next: next, Output: minik8s.JSON{Raw: []byte("1")}}})
	}
	for round := range int64(100) { // a state whose branches fail at first, and then it goes on
		add(fmt.Sprintf("%d-0", 2*round), 0, minik8s.StepFailed, "")
		add(fmt.Sprintf("%d-0.7-1", 2*round), 0, minik8s.StepSucceeded, "b") // in a state that was not left, since another branch had failed
		add("", 2*round, minik8s.StepRetried, "m")
		add(fmt.Sprintf("%d-0", 2*round+1), 0, minik8s.StepSucceeded, "b")
		add(fmt.Sprintf("%d-0", 2*round+1), 1, minik8s.StepSucceeded, "")
		add("", 2*round+1, minik8s.StepCaught, "m")
	}
	add("", 200, minik8s.StepRetried, "m")
	add("", 201, minik8s.StepRetried, "m")
	add("202-0", 0, minik8s.StepRetried, "a")
	add("202-0", 1, minik8s.StepSucceeded, "b")
	add("202-0", 2, minik8s.StepRetried, "b")
	add("202-1", 0, minik8s.StepSucceeded, "")
	slices.SortFunc(steps, func(a, b *minik8s.WorkflowStep) int { return strings.Compare(placeOf(a).String(), placeOf(b).String()) })
	want := "199 200 201 202-0.1 202-0.2 202-1.0"
	kept := func(h *history) string {
		var out []string
		for at := range h.steps {
			if !h.left(at.branch) {
				out = append(out, at.String())
			}
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
	h := historyOf(steps...)
	if kept(h) != want || len(h.steps) != 6 || len(h.newest) != 3 || len(h.ended) != 1 || h.count != int64(len(steps)) || h.stored != h.count*dataOf(&steps[0].Spec) {
		t.Errorf("it keeps %s, %d steps of %d", kept(h), len(h.steps), h.count)
	}
	for range 20 {
		rand.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
		if other := historyOf(steps...); kept(other) != want || other.count != h.count || other.stored != h.stored || other.first[""] != 199 || other.first["202-0"] != 1 {
			t.Errorf("in another order it keeps %s", kept(other))
		}
	}
}

// bare is as much of a controller as a run needs.
func bare(c client.Interface) *Controller {
	return &Controller{client: c, evaluations: make(chan struct{}, 2)}
}

// What counts is what is in the store: also when the branch of a step is cancelled, when the step is not taken, and when it is there already.
func TestDataIsWhatIsStored(t *testing.T) {
	w := newWorld(t)
	w.workflow("w", machine("a", `"a":{"Type":"Pass","End":true}`), nil)
	w.start("r", "w", `1`)
	r, err := client.Get[*minik8s.WorkflowRun](w.Context(), w.Admin(), client.Key{Kind: api.WorkflowRuns, Namespace: "default", Name: "r"})
	if err != nil {
		t.Fatal(err)
	}
	c := w.As(ControllerName)
	spec := func(n int64) minik8s.WorkflowStepSpec {
		return minik8s.WorkflowStepSpec{Number: n, State: "a", Type: "Pass", Event: minik8s.StepSucceeded, Output: minik8s.JSON{Raw: []byte(`"some"`)}}
	}
	for i, x := range []struct {
		what   string
		create func(ctx context.Context, cancel func(), obj api.Object) (api.Object, error)
		fails  bool
	}{
		{"as usual", func(ctx context.Context, _ func(), obj api.Object) (api.Object, error) {
			return c.Create(ctx, obj, client.WriteOptions{})
		}, false},
		{"cancelled meanwhile", func(ctx context.Context, cancel func(), obj api.Object) (api.Object, error) {
			cancel()
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			return c.Create(ctx, obj, client.WriteOptions{})
		}, false},
		{"not taken", func(context.Context, func(), api.Object) (api.Object, error) {
			return nil, apierrors.NewInvalid(schema.GroupKind{}, "x", nil)
		}, true},
		{"there already", func(ctx context.Context, _ func(), obj api.Object) (api.Object, error) {
			other := obj.(*minik8s.WorkflowStep).DeepCopy()
			other.Spec.Output.Raw = []byte(`"of a try before, whose end was not known"`)
			if _, err := c.Create(ctx, other, client.WriteOptions{}); err != nil {
				return nil, err
			}
			return c.Create(ctx, obj, client.WriteOptions{})
		}, false},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		one := newRun(bare(creating{c, func(ctx context.Context, obj api.Object) (api.Object, error) { return x.create(ctx, cancel, obj) }}), r, newHistory())
		one.of = t.Context()
		made, err := one.commit(ctx, spec(int64(i)))
		want := int64(0)
		if !x.fails && made != nil {
			stored, err := client.Get[*minik8s.WorkflowStep](w.Context(), w.Admin(), client.KeyOf(made))
			if err != nil {
				t.Fatal(err)
			}
			want = dataOf(&stored.Spec)
		}
		if x.fails != (err != nil) || one.stored.Load() != want {
			t.Errorf("%s: %v; it counts %d bytes, and %d are stored", x.what, err, one.stored.Load(), want)
		}
		cancel()
		if _, err := one.commit(ctx, spec(100)); err == nil || one.stored.Load() != want {
			t.Errorf("%s: a branch that was cancelled before has committed a step (%v), or it counts: %d bytes", x.what, err, one.stored.Load())
		}
	}
}

// Of all runs no more evaluations go on at a time than there are places, and what waits has none.
func TestEvaluationsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bare(nil)
		var now atomic.Int64
		block := make(chan struct{})
		for range 10 {
			go evaluate(t.Context(), newRun(c, &minik8s.WorkflowRun{}, newHistory()), func() (any, *asl.Error) { //nolint:errcheck // it gives none
				if n := now.Add(1); n > int64(cap(c.evaluations)) {
					t.Errorf("%d evaluations go on", n)
				}
				<-block
				now.Add(-1)
				return nil, nil
			})
		}
		synctest.Wait()
		if now.Load() != int64(cap(c.evaluations)) {
			t.Errorf("%d evaluations go on", now.Load())
		}
		close(block)
		synctest.Wait()
		if now.Load() != 0 || len(c.evaluations) != 0 {
			t.Errorf("%d evaluations have no end; %d places are taken", now.Load(), len(c.evaluations))
		}
	})
	calls, answer := make(chan Call), make(chan Result)
	caller := callerFunc(func(_ context.Context, c Call) Result { calls <- c; return <-answer })
	start := metav1.NowMicro()
	r := &minik8s.WorkflowRun{Status: minik8s.WorkflowRunStatus{StartTime: &start}}
	for _, state := range []string{
		`{"Type":"Pass","End":true}`, `{"Type":"Succeed"}`, `{"Type":"Fail","ErrorPath":"$"}`, `{"Type":"Choice","Choices":[{"Variable":"$","IsNull":true,"Next":"b"}],"Default":"b"}`,
		`{"Type":"Wait","Seconds":3600,"End":true}`, task("f", `"End":true`), `{"Type":"Map","ItemsPath":"$$.Execution.Input","End":true,"ItemProcessor":` + machine("i", `"i":{"Type":"Pass","End":true}`) + `}`,
	} {
		rest := ""
		if strings.Contains(state, "Choice") {
			rest = `,"b":{"Type":"Succeed"}`
		}
		m, errs := asl.Parse([]byte(machine("a", `"a":`+state+rest)), nil)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		synctest.Test(t, func(t *testing.T) {
			c := bare(nil)
			c.caller = caller
			for range cap(c.evaluations) {
				c.evaluations <- struct{}{}
			}
			x := newRun(c, r, newHistory())
			x.input = []any{}
			ended, cancelled := make(chan error, 1), make(chan error, 1)
			do := func(ctx context.Context, end chan error) {
				_, _, err := x.do(ctx, frame{entered: time.Now()}, place{}, m.States["a"], "E", &asl.Context{Object: map[string]any{"Execution": map[string]any{"Input": []any{}}}})
				end <- err
			}
			go do(t.Context(), ended)
			ctx, cancel := context.WithCancel(t.Context())
			go do(ctx, cancelled)
			synctest.Wait()
			cancel()
			synctest.Wait()
			if len(ended) != 0 || len(cancelled) != 1 || <-cancelled == nil {
				t.Errorf("%s: it does not wait for a place", state)
			}
			<-c.evaluations
			if strings.Contains(state, "Task") {
				<-calls
				if len(c.evaluations) != cap(c.evaluations)-1 {
					t.Errorf("%s: it has a place while it waits", state)
				}
				answer <- Result{Body: []byte("1")}
			}
			if err := <-ended; err != nil || len(c.evaluations) != cap(c.evaluations)-1 {
				t.Errorf("%s: %v, and %d places are taken", state, err, len(c.evaluations))
			}
		})
	}
}

type callerFunc func(ctx context.Context, c Call) Result

func (f callerFunc) CallFunction(ctx context.Context, c Call) Result { return f(ctx, c) }

// Branches in branches share the places for goroutines, and all of them run in the end.
func TestLiveBranches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRun(nil, &minik8s.WorkflowRun{}, newHistory())
		var live atomic.Int64
		block := make(chan struct{})
		type one = func(ctx context.Context, i int) (any, *asl.Error, error)
		inner := func(ctx context.Context, i int) (any, *asl.Error, error) {
			return x.sideBySide(ctx, 50, 40, func(_ context.Context, j int) (any, *asl.Error, error) {
				live.Add(1)
				<-block
				return int64(100*i + j), nil, nil
			})
		}
		var result any
		var failed *asl.Error
		done := make(chan error, 1)
		go func() {
			var err error
			result, failed, err = x.sideBySide(t.Context(), 40, 40, one(inner))
			done <- err
		}()
		synctest.Wait()
		if n := live.Load(); n != maxLive+1 {
			t.Errorf("%d branches run at a time", n)
		}
		close(block)
		if err := <-done; err != nil || failed != nil {
			t.Fatal(failed, err)
		}
		for i, list := range result.([]any) {
			for j, v := range list.([]any) {
				if v != int64(100*i+j) {
					t.Fatalf("the result %d of %d is %v", j, i, v)
				}
			}
		}
		if live.Load() != 40*50 || len(x.live) != 0 {
			t.Errorf("%d branches have run; %d places are taken", live.Load(), len(x.live))
		}
		// Fewer at a time, if the state says so.
		block, most := make(chan struct{}), atomic.Int64{}
		go x.sideBySide(t.Context(), 10, 3, func(context.Context, int) (any, *asl.Error, error) { //nolint:errcheck // it gives none
			most.Add(1)
			<-block
			return nil, nil, nil
		})
		synctest.Wait()
		if n := most.Load(); n != 3 {
			t.Errorf("%d at a time", n)
		}
		close(block)
	})
	x := newRun(nil, &minik8s.WorkflowRun{}, newHistory())
	_, failed, err := x.sideBySide(t.Context(), 20, 5, func(context.Context, int) (any, *asl.Error, error) {
		return strings.Repeat("x", 250<<10), nil, nil
	})
	if err != nil || failed == nil || failed.Name != asl.ErrDataLimit {
		t.Errorf("large results: %v %v", failed, err)
	}
}

// A state that waits first in a branch waits from the branch's beginning.
func TestWaitInABranch(t *testing.T) {
	w := newWorld(t)
	w.begin()
	w.workflow("m", machine("m", `"m":{"Type":"Map","MaxConcurrency":1,"End":true,"ItemProcessor":`+machine("a", `"a":{"Type":"Wait","Seconds":0.05,"Next":"b"}`, `"b":{"Type":"Succeed"}`)+`}`), nil)
	w.start("r", "m", `[1,2,3]`)
	w.wait("r")
	steps, _, err := client.All[*minik8s.WorkflowStep](w.Context(), w.Admin(), api.WorkflowSteps, client.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]*minik8s.WorkflowStepSpec{}
	for _, s := range steps {
		at[placeOf(s).String()] = &s.Spec
	}
	for i := range 2 {
		end, next := at[fmt.Sprintf("0-%d.1", i)], at[fmt.Sprintf("0-%d.0", i+1)]
		if next.Entered.Before(&end.Time) || next.Time.Sub(next.Entered.Time) < 50*time.Millisecond {
			t.Errorf("item %d is entered %v after the end of the one before, and waits %v", i+1, next.Entered.Sub(end.Time.Time), next.Time.Sub(next.Entered.Time))
		}
	}
}

// After the loss of a master a branch has begun when it had begun, as far as the steps say.
func TestBeginningsOfBranches(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	after := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	var past []*minik8s.WorkflowStep
	for _, s := range []minik8s.WorkflowStepSpec{
		{Branch: "2-0", Number: 0, Next: "b", Time: metav1.NewMicroTime(after(1))}, {Branch: "2-0", Number: 1, Time: metav1.NewMicroTime(after(9))},
		{Branch: "2-1", Number: 0, Time: metav1.NewMicroTime(after(4))}, {Branch: "2-2", Number: 0, Next: "b", Time: metav1.NewMicroTime(after(6))},
	} {
		past = append(past, &minik8s.WorkflowStep{Spec: s})
	}
	x := newRun(nil, &minik8s.WorkflowRun{}, historyOf(past...))
	began := x.beginnings(frame{began: start, before: true}, place{number: 2}, 5, 2)
	for i, want := range []time.Time{start, start, after(4), after(9)} {
		if got, before := began(i); !got.Equal(want) || !before {
			t.Errorf("branch %d has begun at %v", i, got)
		}
	}
	if got, before := began(4); time.Since(got) > time.Minute || before {
		t.Errorf("a branch that has not begun has begun at %v", got)
	}
	if got, before := x.beginnings(frame{began: start}, place{number: 2}, 5, 2)(0); time.Since(got) > time.Minute || before {
		t.Errorf("a branch of a state that is entered now has begun at %v", got)
	}
}

// Which branches another master had begun is known by their steps, whether its clock was behind this one's or ahead.
func TestBeginningsByAnotherClock(t *testing.T) {
	wait := func(state string) string {
		return `{"Type":"Parallel","Branches":[` + machine(state, `"`+state+`":{"Type":"Wait","Seconds":0,"End":true}`) + `],`
	}
	m, errs := asl.Parse([]byte(machine("a", `"a":{"Type":"Pass","Next":"p"}`, `"p":{"Type":"Parallel","Branches":[`+machine("i", `"i":`+wait("w")+`"End":true}`)+`],"Next":"q"}`, `"q":`+wait("v")+`"End":true}`)), nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, ahead := range []time.Duration{-time.Hour, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			then := time.Now().Add(ahead).Truncate(time.Microsecond)
			start := metav1.NewMicroTime(then.Add(-time.Minute))
			r := &minik8s.WorkflowRun{ObjectMeta: metav1.ObjectMeta{Name: "r", UID: "12345678-1"}, Status: minik8s.WorkflowRunStatus{State: minik8s.RunRunning, MaxSteps: 100, StartTime: &start}}
			past := &minik8s.WorkflowStep{Spec: minik8s.WorkflowStepSpec{State: "a", Event: minik8s.StepSucceeded, Next: "p", Time: metav1.NewMicroTime(then)}}
			entered := map[string]time.Time{}
			x := newRun(bare(creating{nil, func(_ context.Context, obj api.Object) (api.Object, error) {
				s := obj.(*minik8s.WorkflowStep)
				entered[placeOf(s).String()] = s.Spec.Entered.Time
				return s, nil
			}}), r, historyOf(past))
			x.of = t.Context()
			if _, failed, err := x.machine(t.Context(), frame{before: true}, m, nil); failed != nil || err != nil {
				t.Fatal(failed, err)
			}
			if w := entered["1-0.0-0.0"]; !w.Equal(then) {
				t.Errorf("a clock that is %v ahead: the wait that was begun at %v counts as begun at %v", ahead, then, w)
			}
			if v := entered["2-0.0"]; !v.Equal(time.Now()) {
				t.Errorf("a clock that is %v ahead: the wait that is begun now, at %v, counts as begun at %v", ahead, time.Now(), v)
			}
		})
	}
}

// Of a run that is at work others write labels, and delete it, and make another one of its name.
func TestEndOfARun(t *testing.T) {
	w := newWorld(t)
	kill := w.begin()
	w.workflow("b", machine("a", `"a":`+task("blocks", `"End":true`)), nil)
	w.start("r", "b", `1`)
	running := ct.Until(w.Cluster, "it runs", api.WorkflowRuns, func(list []*minik8s.WorkflowRun) bool {
		return list[0].Status.State == minik8s.RunRunning
	})[0]
	ct.Change(w.Cluster, api.WorkflowRuns, "r", func(r *minik8s.WorkflowRun) {
		r.Labels, r.Annotations = map[string]string{"mine": "1"}, map[string]string{"also": "2"}
	})
	close(w.block)
	if r := w.wait("r"); r.Labels["mine"] != "1" || r.Annotations["also"] != "2" || r.Status.State != minik8s.RunSucceeded || string(r.Status.Output.Raw) != "1" {
		t.Errorf("%v %v %+v", r.Labels, r.Annotations, r.Status)
	}
	// One of another UID is not this one, and this one ends nowhere.
	kill()
	ctx, cancel := context.WithTimeout(w.Context(), 30*time.Second)
	defer cancel()
	c := NewController(w.As(ControllerName), nil, w, nil)
	w.start("again", "b", `2`)
	older := running.DeepCopy()
	older.Name, older.UID = "again", "an-older-one"
	if !newRun(c, older, newHistory()).finish(ctx, minik8s.RunCancelled, nil, nil) {
		t.Error("it tries to write the end of a run that is not there any more")
	}
	r, err := client.Get[*minik8s.WorkflowRun](w.Context(), w.Admin(), client.KeyOf(older))
	if err != nil || r.Status.State != "" {
		t.Errorf("the end of another run of the name is written: %+v %v", r.Status, err)
	}
}

// updating is a client whose updates have a bound, as those of the store.
type updating struct {
	client.Interface
	most int
}

func (c updating) Update(ctx context.Context, obj api.Object, opts client.WriteOptions) (api.Object, error) {
	if data, err := json.Marshal(obj); err != nil || len(data) > c.most {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("%d bytes: %v", len(data), err))
	}
	return c.Interface.Update(ctx, obj, opts)
}

// A run that the store does not take ends, with as much as the store takes.
func TestMoreThanTheStoreTakes(t *testing.T) {
	w := newWorld(t)
	w.Start(NewController(updating{w.As(ControllerName), 100 << 10}, nil, w, slog.New(slog.DiscardHandler)).Run)
	large := `"` + strings.Repeat("x", 60<<10) + `"`
	pass := `"a":{"Type":"Pass","Comment":` + large + `,"End":true}`
	for _, x := range []struct{ name, definition, input, err, cause string }{
		{"begin", machine("a", pass), large, asl.ErrDataLimit, "definition and input"},
		{"output", machine("a", pass), `"` + strings.Repeat("x", 20<<10) + `"`, asl.ErrDataLimit, "definition, input and output"},
		{"cause", machine("a", `"a":{"Type":"Fail","Error":"E","CausePath":"$$.Execution.Input"}`), `"` + strings.Repeat("x", 80<<10) + `"`, "E", ""},
	} {
		w.workflow(x.name, x.definition, nil)
		w.start(x.name, x.name, x.input)
		if s := w.wait(x.name).Status; s.State != minik8s.RunFailed || s.Error != x.err || !strings.HasPrefix(s.Cause, x.cause) || x.cause == "" && s.Cause != "" || s.EndTime == nil {
			t.Errorf("%s: %s %s %.100s", x.name, s.State, s.Error, s.Cause)
		}
	}
}

// A step that is there and of another run is not this run's.
func TestForeignStep(t *testing.T) {
	w := newWorld(t)
	w.workflow("p", machine("a", `"a":{"Type":"Pass","End":true}`), nil)
	w.start("r", "p", `1`)
	r, err := client.Get[*minik8s.WorkflowRun](w.Context(), w.Admin(), client.Key{Kind: api.WorkflowRuns, Namespace: "default", Name: "r"})
	if err != nil {
		t.Fatal(err)
	}
	now := metav1.NowMicro()
	ct.Create(w.Cluster, &minik8s.WorkflowStep{ObjectMeta: metav1.ObjectMeta{Name: stepName(r, place{})}, Spec: minik8s.WorkflowStepSpec{Run: "r", State: "a", Type: "Pass", Event: minik8s.StepSucceeded, Output: minik8s.JSON{Raw: []byte(`"not mine"`)}, Entered: now, Time: now}})
	w.begin()
	if s := w.wait("r").Status; s.State != minik8s.RunFailed || !strings.Contains(s.Cause, stepName(r, place{})+" is there already and is none of this run's") {
		t.Errorf("%+v", s)
	}
}

// Definition and params of a run are of one generation of its workflow, also if that changes just then.
func TestOneGeneration(t *testing.T) {
	w := newWorld(t)
	pass := func(n int) []byte {
		return []byte(machine("a", fmt.Sprintf(`"a":{"Type":"Pass","Parameters":{"definition":%d,"params.$":"$.n"},"End":true}`, n)))
	}
	w.making = func() {
		ct.Change(w.Cluster, api.Workflows, "p", func(wf *minik8s.Workflow) {
			wf.Spec.Definition.Raw, wf.Spec.Params.Raw = pass(2), []byte(`{"n":2}`)
		})
	}
	w.begin()
	w.workflow("p", string(pass(1)), func(s *minik8s.WorkflowSpec) { s.Params.Raw = []byte(`{"n":1}`) })
	runs := ct.Until(w.Cluster, "both runs end", api.WorkflowRuns, func(list []*minik8s.WorkflowRun) bool {
		return len(list) == 2 && list[0].Status.Ended() && list[1].Status.Ended()
	})
	for _, r := range runs {
		if out := string(r.Status.Output.Raw); out != `{"definition":1,"params":1}` && out != `{"definition":2,"params":2}` {
			t.Errorf("%s: %s", r.Name, out)
		}
	}
}

// A call is part of its run's trace; one that finds the master busy is made again.
func TestCallsOfSteps(t *testing.T) {
	w := newWorld(t)
	w.busy = 2
	w.begin()
	w.workflow("c", machine("a", `"a":`+task("odd", `"Next":"b"`), `"b":`+task("odd", `"End":true`)), nil)
	w.start("r", "c", `{"X":2}`)
	r := w.wait("r")
	id := strings.ReplaceAll(string(r.UID), "-", "")
	if r.Status.State != minik8s.RunSucceeded || len(w.traces) != 4 || w.traces[0] != w.traces[2] || w.traces[2] == w.traces[3] {
		t.Errorf("%+v %v", r.Status, w.traces)
	}
	for _, trace := range w.traces {
		if !strings.HasPrefix(trace, "00-"+id+"-") || len(trace) != 55 || len(id) != 32 {
			t.Errorf("the trace of %s: %s", r.UID, trace)
		}
	}
}

// A call that cannot be made now is made again, as long as the step has time.
func TestCallsThatCannotBeMade(t *testing.T) {
	w := newWorld(t)
	w.stopped = 2
	w.begin()
	w.workflow("c", machine("a", `"a":`+task("odd", `"TimeoutSeconds":60,"End":true`)), nil)
	w.start("r", "c", `{"X":2}`)
	if s := w.wait("r").Status; s.State != minik8s.RunSucceeded {
		t.Errorf("%+v", s)
	}
	w.mu.Lock()
	w.stopped = 1000
	w.mu.Unlock()
	w.workflow("late", machine("a", `"a":`+task("odd", `"TimeoutSeconds":0.2,"End":true`)), nil)
	w.start("l", "late", `{"X":2}`)
	if s := w.wait("l").Status; s.Error != asl.ErrTimeout {
		t.Errorf("%+v", s)
	}
}

// What calls without a result are for Retry and Catch.
func TestNamesOfErrors(t *testing.T) {
	const frames = "Traceback (most recent call last):\n  File \"/function/main.py\", line 2, in main\n    raise X\n"
	for _, x := range []struct {
		result Result
		want   string
	}{
		{Result{Fault: "function", Status: 500, Body: []byte(frames + "ValueError: odd")}, "ValueError"},
		{Result{Fault: "function", Status: 500, Body: []byte(frames + "KeyError")}, "KeyError"},
		{Result{Fault: "function", Status: 500, Body: []byte(frames + "my.errors.Late: first line\nsecond: line\n  third\nOther: not this")}, "my.errors.Late"},
		{Result{Fault: "function", Status: 500, Body: []byte(frames + "main.<locals>.Inner: x")}, "main.<locals>.Inner"},
		{Result{Fault: "function", Status: 500, Body: []byte(frames + "KeyError: 'a'\n\nDuring handling of the above exception, another exception occurred:\n\n" + frames + "RuntimeError: two\nlines")}, "RuntimeError"},
		{Result{Fault: "function", Status: 500, Body: []byte(frames + "KeyError: 'a'\n\nThe above exception was the direct cause of the following exception:\n\n" + frames + "OSError: x")}, "OSError"},
		{Result{Fault: "function", Status: 500, Body: []byte("  + Exception Group Traceback (most recent call last):\n  |   File \"x\", line 1\n  | ExceptionGroup: two (2 sub-exceptions)\n  +-+---------------- 1 ----------------\n    | ValueError: a")}, "ExceptionGroup"},
		{Result{Fault: "function", Status: 500, Body: []byte("panic: oh")}, "Function.Failed"},
		{Result{Fault: "function", Status: 502, Body: []byte("the instance ended")}, "Function.Failed"},
		{Result{Fault: "function", Status: 504, Late: true, Body: []byte("the function did not answer within its time")}, "Function.Timeout"},
		{Result{Fault: "function", Status: 504, Instance: "pod", Body: []byte("a gateway behind the image")}, "Function.Failed"},
		{Result{Fault: "platform", Status: 504, Body: []byte("no instance with room")}, "Function.Unavailable"},
		{Result{Fault: "platform", Status: 503}, "Function.Unavailable"},
		{Result{Fault: "caller", Status: 404}, "Function.NotFound"},
		{Result{Fault: "caller", Status: 404, Instance: "pod", Body: []byte("no such order")}, "Function.BadRequest"},
		{Result{Fault: "caller", Status: 400}, "Function.BadRequest"},
	} {
		if got := errorOf(&x.result).Name; got != x.want {
			t.Errorf("%d of the %s: %q is %s", x.result.Status, x.result.Fault, x.result.Body, got)
		}
	}
}

// A master that begins to lead reads the steps of what is under way, part by part, and nothing when nothing is.
func TestWhatANewMasterReads(t *testing.T) {
	w := newWorld(t)
	kill := w.begin()
	w.workflow("w", machine("a", `"a":{"Type":"Pass","Parameters":{"x.$":"States.MathAdd($.x, 1)"},"Next":"b"}`, `"b":{"Type":"Choice","Choices":[{"Variable":"$.x","NumericLessThan":120,"Next":"a"}],"Default":"c"}`, `"c":`+task("blocks", `"End":true`)), nil)
	w.start("done", "w", `{"x":121}`)
	w.start("r", "w", `{"x":0}`)
	ct.Until(w.Cluster, "both wait", api.WorkflowSteps, func(list []*minik8s.WorkflowStep) bool { return len(list) == 242 })
	kill()
	if len(w.lists) != 0 {
		t.Errorf("it has read steps while there was no run: %v", w.lists)
	}
	close(w.block)
	w.begin()
	for _, run := range []string{"done", "r"} {
		if s := w.wait(run).Status; s.State != minik8s.RunSucceeded {
			t.Errorf("%s: %+v", run, s)
		}
	}
	if got := w.wait("r").Status.Steps; got != 241 {
		t.Errorf("it has had %d steps", got)
	}
	if len(w.lists) < 3 {
		t.Errorf("it has read steps %d times", len(w.lists))
	}
	for _, l := range w.lists {
		if l.Namespace != "default" || l.Limit == 0 {
			t.Errorf("it reads more than it needs: %+v", l)
		}
	}
}

// The members of an object are items in one order, also for the master that goes on with a run.
func TestItemsOfAnObject(t *testing.T) {
	w := newWorld(t)
	w.workflow("m", machine("m", `"m":{"Type":"Map","MaxConcurrency":1,"ItemsPath":"$.*","ItemSelector":{"x.$":"$$.Map.Item.Value"},"End":true,"ItemProcessor":`+machine("a", `"a":`+task("add", `"ResultSelector":{"x.$":"$.x"},"End":true`))+`}`), nil)
	w.killAt, w.after, w.hit = 5, true, make(chan struct{}) // its beginning and four items
	kill := w.begin()
	w.start("r", "m", `{"h":8,"c":3,"a":1,"g":7,"b":2,"e":5,"d":4,"f":6}`)
	<-w.hit
	kill()
	w.begin()
	if s := w.wait("r").Status; string(s.Output.Raw) != `[{"x":6},{"x":7},{"x":8},{"x":9},{"x":10},{"x":11},{"x":12},{"x":13}]` {
		t.Errorf("%s %s", s.Output.Raw, s.Cause)
	}
}
