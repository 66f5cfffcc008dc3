package ctl

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/ctl/exit"
)

const wfPath = "/apis/minik8s.io/v1/namespaces/default/"

func workflow(name string) *minik8s.Workflow {
	return &minik8s.Workflow{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: minik8s.WorkflowSpec{Definition: minik8s.JSON{Raw: []byte(`{"StartAt":"a","States":{"a":{"Type":"Succeed"}}}`)}}}
}

// wfrun is a run that began so many milliseconds after the test's time; -1: it has not begun.
func wfrun(name, of string, began int) *minik8s.WorkflowRun {
	r := &minik8s.WorkflowRun{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, CreationTimestamp: metav1.NewTime(testTime)}, Spec: minik8s.WorkflowRunSpec{Workflow: of}}
	if began >= 0 {
		at := metav1.NewMicroTime(testTime.Add(time.Duration(began) * time.Millisecond))
		r.Status = minik8s.WorkflowRunStatus{State: minik8s.RunSucceeded, StartTime: &at, EndTime: &at, Definition: workflow("x").Spec.Definition, Output: minik8s.JSON{Raw: []byte(`"` + name + `"`)}}
	}
	return r
}

// Which run or workflow a name means, and what is said when it is none, or both.
func TestWorkflowNames(t *testing.T) {
	f := newFake(t, workflow("both"), wfrun("both", "other", 1), workflow("idle"), workflow("many"), wfrun("many-a", "many", 7), wfrun("many-b", "many", 9), wfrun("many-c", "many", 3))
	for _, x := range []struct {
		args, want string
		code       int
	}{
		{"wf watch many-a", `many-a: Succeeded after 0 steps: "many-a"`, 0},
		{"wf watch both", `"both" is a workflow and a run of workflow other: add --run if the run is meant, or name a run of the workflow`, exit.Usage},
		{"wf graph both", `"both" is a workflow and a run of workflow other`, exit.Usage},
		{"wf cancel both", `"both" is a workflow and a run of workflow other`, exit.Usage},
		{"wf watch --run both", `both: Succeeded after 0 steps: "both"`, 0},
		{"wf graph --run both", "* done", 0},
		{"wf cancel --run both", "run both has ended: Succeeded", exit.Failed},
		{"wf watch absent", `there is no run and no workflow "absent" in namespace default (minik8sd ctl wf get)`, exit.NotFound},
		{"wf watch --run many", `"many" not found`, exit.NotFound},
		{"wf graph absent", `there is no workflow, no run and no function "absent" in namespace default`, exit.NotFound},
		{"wf watch default/many-c", `many-c: Succeeded`, 0},
		{"wf apply --chain absent", `--chain: there is no function "absent" in namespace default`, exit.NotFound},
		{"wf apply --chain x -f y", `--chain FUNCTION stands alone`, exit.Usage},
	} {
		if got := f.ctl("", strings.Fields(x.args)...); got.code != x.code || !strings.Contains(got.out+got.text, x.want) {
			t.Errorf("%s: %+v", x.args, got)
		}
	}
	f = newFake(t, workflow("many"), wfrun("many-a", "many", 7), wfrun("many-b", "many", 9), wfrun("many-c", "many", 3))
	if got := f.ctl("", "wf", "watch", "many"); !strings.Contains(got.out, "many-b: Succeeded") {
		t.Errorf("the newest of one second: %+v", got)
	}
	f.put(wfPath+"workflowruns/many-0", wfrun("many-0", "many", -1))
	if got := f.ctl("", "wf", "graph", "many-0"); got.code != exit.Failed || !strings.Contains(got.text, "run many-0 has not begun yet; try again") {
		t.Errorf("a run that has not begun: %+v", got)
	}
	f = newFake(t, workflow("idle"))
	if got := f.ctl("", "wf", "watch", "idle"); got.code != exit.NotFound || !strings.Contains(got.text, "workflow idle has no runs; start one: minik8sd ctl wf run idle") {
		t.Errorf("a workflow without runs: %+v", got)
	}
}

// The run that a workflow starts when it is applied is there a moment later.
func TestWatchWhatWasJustApplied(t *testing.T) {
	w := workflow("w")
	w.Generation, w.Spec.Params = 2, minik8s.JSON{Raw: []byte("1")}
	w.Status.ObservedGeneration = 1
	f := newFake(t, w, wfrun("before", "w", 5))
	asked := 0
	f.routes["GET "+wfPath+"workflows/w"] = func(rw http.ResponseWriter, _ *http.Request) {
		if asked++; asked == 3 {
			w.Status.ObservedGeneration = 2
			f.put(wfPath+"workflowruns/now", wfrun("now", "w", 9))
		}
		rw.Header().Set("Content-Type", "application/json")
		json.NewEncoder(rw).Encode(w) //nolint:errcheck // a test's
	}
	if got := f.ctl("", "wf", "watch", "w"); !strings.Contains(got.out, "now: Succeeded") {
		t.Errorf("%+v", got)
	}
}

// A run that is watched may be deleted, and made anew.
func TestWatchADeletedRun(t *testing.T) {
	for _, again := range []bool{false, true} {
		r := wfrun("r", "w", -1)
		f := newFake(t, r)
		f.routes["GET "+wfPath+"workflowsteps"] = func(w http.ResponseWriter, _ *http.Request) {
			delete(f.objects, wfPath+"workflowruns/r")
			if again {
				f.put(wfPath+"workflowruns/r", wfrun("r", "w", 5))
			}
			w.Header().Set("Content-Type", "application/json")
			w.Write([]byte(`{"apiVersion":"minik8s.io/v1","kind":"WorkflowStepList","metadata":{},"items":[]}`)) //nolint:errcheck // a test
		}
		if got := f.ctl("", "wf", "watch", "r"); got.code != exit.NotFound || !strings.Contains(got.text, "run r has been deleted") {
			t.Errorf("made anew: %v: %+v", again, got)
		}
	}
}

// Steps are shown in the order of the store: a master that has taken over may have another clock.
func TestOrderOfSteps(t *testing.T) {
	f := newFake(t, wfrun("r", "w", 5))
	uid := f.get(wfPath + "workflowruns/r").GetUID()
	f.routes["GET "+wfPath+"workflowsteps"] = func(w http.ResponseWriter, _ *http.Request) {
		step := func(revision, state, time string) string {
			return fmt.Sprintf(`{"metadata":{"name":"r.%s","namespace":"default","resourceVersion":"%s","ownerReferences":[{"apiVersion":"minik8s.io/v1","kind":"WorkflowRun","name":"r","uid":"%s","controller":true}]},"spec":{"run":"r","number":0,"state":"%s","event":"Succeeded","time":"2026-01-02T03:04:%s.000000Z"}}`,
				state, revision, uid, state, time)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"apiVersion":"minik8s.io/v1","kind":"WorkflowStepList","metadata":{},"items":[%s,%s,%s]}`, step("100", "third", "04"), step("9", "first", "50"), step("11", "second", "03"))
	}
	if got := f.ctl("", "wf", "watch", "r"); !regexp.MustCompile(`(?s)first .*second .*third .*r: Succeeded`).MatchString(got.out) {
		t.Errorf("%+v", got)
	}
}

// A chain of functions becomes a workflow as a manifest does: it is made, then changed, and with --dry-run neither.
func TestApplyAChain(t *testing.T) {
	function := func(name, left, right string) *minik8s.Function {
		return &minik8s.Function{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: minik8s.FunctionSpec{Left: left, Right: right}}
	}
	f := newFake(t, function("a", "b", ""), function("b", "a", "absent"))
	if got := f.ctl("", "wf", "apply", "--chain", "a", "--dry-run"); got.code != 0 || !strings.Contains(got.out, "dry run") {
		t.Errorf("dry: %+v", got)
	}
	for _, want := range []string{"created", "unchanged", "configured"} {
		if want == "configured" {
			f.put(wfPath+"functions/b", function("b", "RETURN", "RETURN"))
		}
		if got := f.ctl("", "wf", "apply", "--chain", "a"); got.code != 0 || !strings.Contains(got.out, want) {
			t.Errorf("%s: %+v", want, got)
		}
		w, _ := f.get(wfPath + "workflows/a").(*minik8s.Workflow)
		if w == nil {
			t.Fatal("there is no workflow")
		}
		definition := string(w.Spec.Definition.Raw)
		if !strings.Contains(definition, `"Left":"b"`) || strings.Contains(definition, `"absent"`) != (want != "configured") {
			t.Errorf("%s: %s", want, definition)
		}
	}
}
