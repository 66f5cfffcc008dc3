package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	ct "minik8s/internal/controller/controllertest"
	"minik8s/internal/workflow/asl"
)

// world is a cluster whose functions are Go.
type world struct {
	*ct.Cluster
	t *testing.T

	mu        sync.Mutex
	committed map[string]bool // steps in the store, by the id with which their functions are called
	called    map[string]int  // calls, by their ids
	writes    int
	killAt    int  // the write at which the controller is stopped; 0: none
	after     bool // the write is done before that
	hit       chan struct{}
	block     chan struct{}        // a function blocks waits for it
	traces    []string             // what calls have said of their traces
	busy      int                  // how many calls still find the master busy
	stopped   int                  // how many calls still cannot be made at all
	making    func()               // called before a run is made
	lists     []client.ListOptions // of steps
}

func newWorld(t *testing.T) *world {
	return &world{Cluster: ct.New(t), t: t, committed: map[string]bool{}, called: map[string]int{}, block: make(chan struct{})}
}

// begin starts the controller, as it is when a master begins to lead.
func (w *world) begin() (kill func()) {
	c := &watched{w.As(ControllerName), w}
	return w.Start(NewController(c, nil, w, slog.New(slog.DiscardHandler)).Run)
}

// CallFunction is the functions. What they give depends on their input alone, but for flaky.
func (w *world) CallFunction(ctx context.Context, c Call) Result {
	w.mu.Lock()
	if w.committed[c.ID] {
		w.t.Errorf("%s is called again for %s, whose step is committed", c.Function, c.ID)
	}
	w.called[c.ID]++
	w.traces = append(w.traces, c.TraceParent)
	w.busy--
	busy := w.busy >= 0
	w.stopped--
	stopped := w.stopped >= 0
	w.mu.Unlock()
	if stopped {
		return Result{Fault: minik8s.FaultPlatform, Status: 503, Body: []byte("the store has no leader"), Stopped: true}
	}
	if busy {
		return Result{Fault: minik8s.FaultPlatform, Status: 429, Body: []byte("as many calls as it may")}
	}
	fault := func(text string) Result { return Result{Fault: "function", Status: 500, Body: []byte(text)} }
	var in struct{ X int64 }
	json.Unmarshal(c.Body, &in) //nolint:errcheck // then it is 0
	switch c.Function {
	case "add":
		return Result{Body: fmt.Appendf(nil, `{"x":%d}`, in.X+5), ContentType: "application/json", Instance: "pod", Branch: map[bool]string{true: "left", false: "right"}[in.X+5 < 30]}
	case "odd":
		if in.X%2 == 1 {
			return fault("Traceback (most recent call last):\n  File\nValueError: odd")
		}
		return Result{Body: c.Body, ContentType: "application/json"}
	case "flaky": // every other step
		if n := c.ID[len(c.ID)-1]; n%2 == 0 {
			return fault("Traceback (most recent call last):\n  File\nFlaky")
		}
		return Result{Body: c.Body, ContentType: "application/json"}
	case "blocks":
		select {
		case <-w.block:
		case <-ctx.Done():
		}
		return Result{Body: c.Body, ContentType: "application/json"}
	case "text":
		return Result{Body: append(c.Body, " world"...), ContentType: "text/plain; charset=utf-8", Branch: map[bool]string{true: "left", false: "right"}[string(c.Body) == "hello"]}
	case "fill":
		return Result{Body: fmt.Appendf(nil, "%q", strings.Repeat("x", 200<<10)), ContentType: "application/json"}
	case "fails":
		return fault("Traceback (most recent call last):\n  File\n" + strings.Repeat("E", 300<<10) + ": " + strings.Repeat("long ", 100<<10))
	case "garbage":
		return fault("it is \xff\xfe<&>\x01 and no more than that")
	case "big":
		return Result{Body: fmt.Appendf(nil, "%q", strings.Repeat("x", asl.MaxData)), ContentType: "application/json"}
	}
	return Result{Fault: "caller", Status: 404, Body: []byte("there is no function " + c.Function)}
}

// watched is the controller's client. It stops the controller at a write, before or after that is done.
type watched struct {
	client.Interface
	w *world
}

func (c *watched) write(ctx context.Context, do func(ctx context.Context) (api.Object, error)) (api.Object, error) {
	w := c.w
	w.mu.Lock()
	w.writes++
	dies, after, hit := w.writes == w.killAt, w.after, w.hit
	w.mu.Unlock()
	if !dies {
		return do(ctx)
	}
	if after {
		if _, err := do(ctx); err != nil {
			w.t.Error(err)
		}
	}
	close(hit)
	<-ctx.Done()
	return nil, ctx.Err()
}

func (c *watched) Create(ctx context.Context, obj api.Object, opts client.WriteOptions) (api.Object, error) {
	s, ok := obj.(*minik8s.WorkflowStep)
	if !ok {
		c.w.mu.Lock()
		making := c.w.making
		c.w.making = nil
		c.w.mu.Unlock()
		if making != nil {
			making()
		}
		return c.Interface.Create(ctx, obj, opts)
	}
	return c.write(ctx, func(ctx context.Context) (api.Object, error) {
		made, err := c.Interface.Create(ctx, obj, opts)
		if err == nil {
			c.w.mu.Lock()
			c.w.committed["step-"+string(ownerOf(s))+"."+placeOf(s).String()] = true
			c.w.mu.Unlock()
		}
		return made, err
	})
}

func (c *watched) List(ctx context.Context, kind *api.Kind, opts client.ListOptions) (*client.List, error) {
	if kind == api.WorkflowSteps {
		c.w.mu.Lock()
		c.w.lists = append(c.w.lists, opts)
		c.w.mu.Unlock()
	}
	return c.Interface.List(ctx, kind, opts)
}

func (c *watched) Update(ctx context.Context, obj api.Object, opts client.WriteOptions) (api.Object, error) {
	if _, ok := obj.(*minik8s.WorkflowRun); !ok {
		return c.Interface.Update(ctx, obj, opts)
	}
	return c.write(ctx, func(ctx context.Context) (api.Object, error) { return c.Interface.Update(ctx, obj, opts) })
}

func (w *world) workflow(name, definition string, change func(*minik8s.WorkflowSpec)) {
	w.t.Helper()
	wf := &minik8s.Workflow{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: minik8s.WorkflowSpec{Definition: minik8s.JSON{Raw: []byte(definition)}}}
	if change != nil {
		change(&wf.Spec)
	}
	ct.Create(w.Cluster, wf)
}

func (w *world) start(run, workflow, input string) {
	w.t.Helper()
	ct.Create(w.Cluster, &minik8s.WorkflowRun{ObjectMeta: metav1.ObjectMeta{Name: run}, Spec: minik8s.WorkflowRunSpec{Workflow: workflow, Input: minik8s.JSON{Raw: []byte(input)}}})
}

// wait waits until a run has ended.
func (w *world) wait(run string) (r *minik8s.WorkflowRun) {
	w.t.Helper()
	ct.Until(w.Cluster, run+" ends", api.WorkflowRuns, func(list []*minik8s.WorkflowRun) bool {
		for _, r = range list {
			if r.Name == run {
				return r.Status.Ended()
			}
		}
		return false
	})
	return r
}

// history is a run's steps as text, sorted by their places.
func (w *world) history(run string) string {
	w.t.Helper()
	all, _, err := client.All[*minik8s.WorkflowStep](w.Context(), w.Admin(), api.WorkflowSteps, client.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	out := map[string]string{}
	for _, s := range all {
		if x := &s.Spec; x.Run == run {
			out[placeOf(s).String()] = fmt.Sprintf("%s %s -> %s %s %s %s", x.State, x.Event, x.Next, x.Output.Raw, x.Error, x.Cause)
		}
	}
	var b strings.Builder
	for _, at := range slices.Sorted(maps.Keys(out)) {
		fmt.Fprintf(&b, "%s: %s\n", at, out[at])
	}
	return b.String()
}

// task is a Task state's fields.
func task(function, rest string) string {
	return `{"Type":"Task","Resource":"` + function + `",` + rest + `}`
}

func machine(start string, states ...string) string {
	return `{"StartAt":"` + start + `","States":{` + strings.Join(states, ",") + `}}`
}

// What runs come to.
func TestRuns(t *testing.T) {
	w := newWorld(t)
	w.begin()
	for i, x := range []struct {
		what, definition, input   string
		state, output, err, cause string
		steps                     int64
	}{
		{"the print workflow", machine("addFive", `"addFive":`+task("add", `"Next":"judge"`), `"judge":{"Type":"Choice","Choices":[{"Variable":"$.x","NumericEquals":10,"Next":"yes"},{"Not":{"Variable":"$.x","NumericEquals":10},"Next":"no"}]}`, `"yes":{"Type":"Pass","Result":"=","End":true}`, `"no":{"Type":"Pass","Result":"!=","End":true}`),
			`{"x":5}`, minik8s.RunSucceeded, `"="`, "", "", 3},
		{"a loop by left and right", machine("a", `"a":`+task("add", `"Left":"a","Right":"RETURN"`)), `{"x":0}`, minik8s.RunSucceeded, `{"x":30}`, "", "", 6},
		{"texts", machine("a", `"a":`+task("text", `"Left":"a","Right":"RETURN"`)), `"hello"`, minik8s.RunSucceeded, `"hello world world"`, "", "", 2},
		{"an error of a function", machine("a", `"a":`+task("odd", `"End":true`)), `{"x":1}`, minik8s.RunFailed, "", "ValueError", "Traceback", 1},
		{"one that is caught", machine("a", `"a":`+task("odd", `"End":true,"Catch":[{"ErrorEquals":["ValueError"],"ResultPath":"$.e","Next":"b"}]`), `"b":{"Type":"Pass","OutputPath":"$.e.Error","End":true}`), `{"x":1}`, minik8s.RunSucceeded, `"ValueError"`, "", "", 2},
		{"retried in vain", machine("a", `"a":`+task("odd", `"End":true,"Retry":[{"ErrorEquals":["States.ALL"],"IntervalSeconds":0.001,"MaxAttempts":2}]`)), `{"x":1}`, minik8s.RunFailed, "", "ValueError", "odd", 3},
		{"retried", machine("a", `"a":`+task("flaky", `"End":true,"Retry":[{"ErrorEquals":["Flaky"],"IntervalSeconds":0.001}]`)), `{"x":1}`, minik8s.RunSucceeded, `{"x":1}`, "", "", 2},
		{"no such function", machine("a", `"a":`+task("none", `"End":true`)), `{}`, minik8s.RunFailed, "", "Function.NotFound", "there is no function none", 1},
		{"parallel", machine("p", `"p":{"Type":"Parallel","End":true,"ResultPath":"$.r","Branches":[`+machine("a", `"a":`+task("add", `"End":true`))+`,`+machine("b", `"b":{"Type":"Pass","Result":7,"Next":"c"}`, `"c":{"Type":"Succeed"}`)+`]}`), `{"x":1}`, minik8s.RunSucceeded, `{"r":[{"x":6},7],"x":1}`, "", "", 4},
		{"a branch that fails", machine("p", `"p":{"Type":"Parallel","End":true,"Catch":[{"ErrorEquals":["States.BranchFailed"],"Next":"z"}],"Branches":[`+machine("a", `"a":{"Type":"Fail","Error":"E","Cause":"c"}`)+`,`+machine("b", `"b":`+task("blocks", `"End":true`))+`]}`, `"z":{"Type":"Succeed"}`), `{}`, minik8s.RunSucceeded, `{"Cause":"c","Error":"E"}`, "", "", 3},
		{"map", machine("m", `"m":{"Type":"Map","End":true,"ItemsPath":"$.l","MaxConcurrency":2,"ItemSelector":{"x.$":"$$.Map.Item.Value","i.$":"$$.Map.Item.Index"},"ItemProcessor":`+machine("a", `"a":{"Type":"Task","Resource":"add","ResultPath":"$.r","End":true}`)+`}`), `{"l":[1,2,3]}`, minik8s.RunSucceeded, `[{"i":0,"r":{"x":6},"x":1},{"i":1,"r":{"x":7},"x":2},{"i":2,"r":{"x":8},"x":3}]`, "", "", 4},
		{"an empty map", machine("m", `"m":{"Type":"Map","End":true,"Iterator":`+machine("a", `"a":{"Type":"Succeed"}`)+`}`), `[]`, minik8s.RunSucceeded, `[]`, "", "", 1},
		{"the context object", machine("a", `"a":{"Type":"Pass","Parameters":{"n.$":"$$.Execution.Name","in.$":"$$.Execution.Input","s.$":"$$.State.Name","w.$":"$$.StateMachine.Name"},"End":true}`), `3`, minik8s.RunSucceeded, `{"in":3,"n":"run-12","s":"a","w":"wf-12"}`, "", "", 1},
		{"a wait", machine("a", `"a":{"Type":"Wait","Seconds":0.01,"End":true}`), `3`, minik8s.RunSucceeded, `3`, "", "", 1},
		{"a limit of a task", machine("a", `"a":`+task("blocks", `"TimeoutSeconds":0.02,"End":true`)), `3`, minik8s.RunFailed, "", asl.ErrTimeout, "TimeoutSeconds", 1},
		{"no heartbeat", machine("a", `"a":`+task("blocks", `"HeartbeatSeconds":0.02,"End":true`)), `3`, minik8s.RunFailed, "", asl.ErrHeartbeat, "heartbeats", 1},
		{"a limit of the run", `{"TimeoutSeconds":0.02,` + machine("a", `"a":`+task("blocks", `"End":true`))[1:], `3`, minik8s.RunTimedOut, "", asl.ErrTimeout, "0", 0},
		{"too much data", machine("a", `"a":`+task("big", `"End":true`)), `3`, minik8s.RunFailed, "", asl.ErrDataLimit, "", 1},
		{"a fail state", machine("a", `"a":{"Type":"Fail","ErrorPath":"$.e","CausePath":"States.Format('it is {}', $.e)"}`), `{"e":"E"}`, minik8s.RunFailed, "", "E", "it is E", 1},
		{"no rule", machine("a", `"a":{"Type":"Choice","Choices":[{"Variable":"$","IsNull":true,"Next":"b"}]}`, `"b":{"Type":"Succeed"}`), `1`, minik8s.RunFailed, "", asl.ErrNoChoice, "", 1},
	} {
		name, run := fmt.Sprintf("wf-%d", i), fmt.Sprintf("run-%d", i)
		w.workflow(name, x.definition, nil)
		w.start(run, name, x.input)
		s := w.wait(run).Status
		if s.State != x.state || string(s.Output.Raw) != x.output || s.Error != x.err || !strings.Contains(s.Cause, x.cause) || s.Steps != x.steps || s.EndTime == nil {
			t.Errorf("%s: %s %s %q %q after %d steps\n%s", x.what, s.State, s.Output.Raw, s.Error, s.Cause, s.Steps, w.history(run))
		}
	}
	w.start("nothing", "none", `1`)
	if s := w.wait("nothing").Status; s.Error != "Workflow.NotFound" {
		t.Errorf("a run of nothing: %+v", s)
	}
}

// A run that never ends is stopped, and nothing catches that.
func TestStepLimit(t *testing.T) {
	w := newWorld(t)
	w.begin()
	loop := `"a":{"Type":"Pass","Next":"b"}`
	back := `"b":{"Type":"Choice","Choices":[{"Variable":"$.stop","IsPresent":true,"Next":"c"}],"Default":"a"},"c":{"Type":"Succeed"}`
	w.workflow("loop", machine("p", `"p":{"Type":"Parallel","End":true,"Retry":[{"ErrorEquals":["States.ALL"]}],"Catch":[{"ErrorEquals":["States.ALL"],"Next":"z"}],"Branches":[`+machine("a", loop, back)+`]}`, `"z":{"Type":"Succeed"}`),
		func(s *minik8s.WorkflowSpec) { s.MaxSteps = 50 })
	w.start("r", "loop", `{}`)
	if s := w.wait("r").Status; s.State != minik8s.RunFailed || s.Error != "Workflow.StepLimit" || s.Steps != 49 {
		t.Errorf("%+v", s)
	}
	w.workflow("exact", machine("a", `"a":{"Type":"Pass","Next":"b"}`, `"b":{"Type":"Pass","End":true}`), func(s *minik8s.WorkflowSpec) { s.MaxSteps = 2 })
	w.start("e", "exact", `{}`)
	if s := w.wait("e").Status; s.State != minik8s.RunSucceeded {
		t.Errorf("as many as it may: %+v", s)
	}
	w.workflow("return", machine("a", `"a":`+task("add", `"Left":"a","Right":"RETURN"`)), func(s *minik8s.WorkflowSpec) { s.MaxSteps = 1 })
	w.start("right", "return", `{"x":25}`)
	if s := w.wait("right").Status; s.State != minik8s.RunSucceeded {
		t.Errorf("one that its function ends: %+v", s)
	}
	w.start("left", "return", `{"x":20}`)
	if s := w.wait("left").Status; s.Error != "Workflow.StepLimit" || s.Steps != 1 {
		t.Errorf("one that its function does not end: %+v", s)
	}
}

// A workflow with params runs when it is made and when it changes, once each; its status says what is missing; what it has begun with stays.
func TestApplied(t *testing.T) {
	w := newWorld(t)
	kill := w.begin()
	w.workflow("print", machine("a", `"a":`+task("add", `"End":true`)), func(s *minik8s.WorkflowSpec) { s.Params.Raw = []byte(`{"x":5}`) })
	said := func(what string, generation int64, reason string) *minik8s.Workflow {
		return ct.Until(w.Cluster, what, api.Workflows, func(list []*minik8s.Workflow) bool {
			s := list[0].Status
			return s.ObservedGeneration == generation && s.LastRun != "" && len(s.Conditions) == 1 && s.Conditions[0].Reason == reason
		})[0]
	}
	wf := said("a run", 1, "FunctionMissing")
	if r := w.wait(wf.Status.LastRun); string(r.Status.Output.Raw) != `{"x":10}` || r.Spec.Workflow != "print" {
		t.Errorf("%+v", r.Status)
	}
	ct.Create(w.Cluster, &minik8s.Function{ObjectMeta: metav1.ObjectMeta{Name: "add"}, Spec: minik8s.FunctionSpec{Source: "x"}})
	said("its function is there", 1, "Ready")
	kill()
	w.begin()
	ct.Change(w.Cluster, api.Workflows, "print", func(wf *minik8s.Workflow) { wf.Spec.Params.Raw = []byte(`{"x":6}`) })
	if r := w.wait(said("another run", 2, "Ready").Status.LastRun); string(r.Status.Output.Raw) != `{"x":11}` {
		t.Errorf("%+v", r.Status)
	}
	runs, _, err := client.All[*minik8s.WorkflowRun](w.Context(), w.Admin(), api.WorkflowRuns, client.ListOptions{})
	if err != nil || len(runs) != 2 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
}

// A run that is cancelled or deleted ends, and one whose time is over goes.
func TestCancelDeleteExpire(t *testing.T) {
	w := newWorld(t)
	w.begin()
	w.workflow("b", machine("a", `"a":`+task("blocks", `"Next":"b"`), `"b":{"Type":"Succeed"}`), func(s *minik8s.WorkflowSpec) { s.RunSeconds = 1 })
	w.start("cancelled", "b", `1`)
	w.start("deleted", "b", `1`)
	ct.Until(w.Cluster, "both run", api.WorkflowRuns, func(list []*minik8s.WorkflowRun) bool {
		return len(list) == 2 && list[0].Status.State == minik8s.RunRunning && list[1].Status.State == minik8s.RunRunning
	})
	ct.Change(w.Cluster, api.WorkflowRuns, "cancelled", func(r *minik8s.WorkflowRun) { r.Spec.Cancel = true })
	if s := w.wait("cancelled").Status; s.State != minik8s.RunCancelled || s.EndTime == nil {
		t.Errorf("%+v", s)
	}
	if _, err := w.Admin().Delete(w.Context(), client.Key{Kind: api.WorkflowRuns, Namespace: "default", Name: "deleted"}, nil); err != nil {
		t.Fatal(err)
	}
	ct.Until(w.Cluster, "the one whose time is over has gone", api.WorkflowRuns, func(list []*minik8s.WorkflowRun) bool { return len(list) == 0 })
	if h := w.history("cancelled") + w.history("deleted"); h != "" {
		t.Errorf("they have gone on:\n%s", h)
	}
}
