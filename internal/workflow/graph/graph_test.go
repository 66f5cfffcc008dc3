package graph

import (
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/workflow/asl"
)

const definition = `{"StartAt":"add","States":{
	"add":{"Type":"Task","Resource":"addFive","Next":"judge"},
	"judge":{"Type":"Choice","Choices":[{"Variable":"$.x","NumericLessThan":10,"Next":"add"},{"Variable":"$.s","StringEquals":"<b>&","Next":"both"}],"Default":"no"},
	"both":{"Type":"Parallel","Branches":[{"StartAt":"l","States":{"l":{"Type":"Pass","End":true}}},{"StartAt":"r","States":{"r":{"Type":"Pass","Next":"r2"},"r2":{"Type":"Succeed"}}}],"End":true},
	"no":{"Type":"Fail"}}}`

func made(branch string, n int64, state, event, next string) *minik8s.WorkflowStep {
	return &minik8s.WorkflowStep{Spec: minik8s.WorkflowStepSpec{Branch: branch, Number: n, State: state, Event: event, Next: next}}
}

func TestDrawings(t *testing.T) {
	m, errs := asl.Parse([]byte(definition), nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	steps := []*minik8s.WorkflowStep{made("", 0, "add", "Succeeded", "judge"), made("", 1, "judge", "Succeeded", "add"), made("", 2, "add", "Succeeded", "judge"),
		made("", 3, "judge", "Succeeded", "both"), made("4-1", 0, "r", "Succeeded", "r2")}
	text := Text(m, TakenBy(m, steps, true))
	want := `* add  [Task addFive]  2 times  (start)
    ==> judge
* judge  [Choice]  2 times
    x < 10 ==> add
    s == "<b>&" ==> both
    otherwise --> no
> both  [Parallel]
    | branch 0:
    |   o l  [Pass]
    |       --> (end)
    | branch 1:
    |   * r  [Pass]  (start)
    |       ==> r2
    |   > r2  [Succeed]
    --> (end)
o no  [Fail]
`
	if !strings.HasPrefix(text, want) {
		t.Errorf("got\n%s", text)
	}
	if plain := Text(m, nil); strings.Contains(plain, "==>") {
		t.Errorf("without a run something is marked:\n%s", plain)
	}
	svg := SVG(m, TakenBy(m, append(steps, made("", 4, "both", "Failed", "")), false))
	for dec := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := dec.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
	for _, part := range []string{">add</text>", ">r2</text>", "&lt;b&gt;&amp;", "#fdd", `stroke="#0a7" stroke-width="3"`} {
		if !strings.Contains(svg, part) {
			t.Errorf("the picture has no %s", part)
		}
	}
}

// In a loop the last pass counts, and a branch that an error of another one has ended is not where the run is.
func TestLoopsAndRetries(t *testing.T) {
	m, errs := asl.Parse([]byte(`{"StartAt":"p","States":{"p":{"Type":"Parallel","Next":"again","Retry":[{"ErrorEquals":["E"]}],"Branches":[
		{"StartAt":"l","States":{"l":{"Type":"Pass","Next":"l2"},"l2":{"Type":"Pass","End":true}}},
		{"StartAt":"q","States":{"q":{"Type":"Map","End":true,"ItemProcessor":{"StartAt":"r","States":{"r":{"Type":"Pass","Next":"r2"},"r2":{"Type":"Pass","End":true}}}}}}]},
		"again":{"Type":"Choice","Choices":[{"Variable":"$","IsNull":true,"Next":"end"}],"Default":"p"},"end":{"Type":"Succeed"}}}`), nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	steps := []*minik8s.WorkflowStep{
		made("0-0", 0, "l", "Succeeded", "l2"), made("0-1.0-0", 0, "r", "Failed", ""), made("0-1", 0, "q", "Failed", ""), made("", 0, "p", "Retried", "p"),
		made("1-0", 0, "l", "Succeeded", "l2"), made("1-1.0-0", 0, "r", "Succeeded", "r2"), made("1-1.0-1", 0, "r", "Succeeded", "r2"),
	}
	for i, s := range steps { // by the clocks of several masters
		s.Spec.Time = metav1.NewMicroTime(time.Unix(int64(i*7%5), 0))
	}
	slices.Reverse(steps) // in whatever order they come
	check := func(what string, now, failed string) {
		t.Helper()
		got, bad := TakenBy(m, steps, true), []string{}
		for name, is := range got.Failed {
			if is {
				bad = append(bad, name)
			}
		}
		slices.Sort(bad)
		if where := strings.Join(slices.Sorted(maps.Keys(got.Now)), " "); where != now || strings.Join(bad, " ") != failed {
			t.Errorf("%s: it is at %s, and has failed at %s", what, where, bad)
		}
	}
	check("in the second try", "l2 p r2", "q")
	steps = append(steps, made("", 1, "p", "Failed", ""))
	check("after it", "", "p q")
	steps = append(steps, made("1-1", 0, "q", "Succeeded", ""), made("1-0", 1, "l2", "Succeeded", ""))
	steps[7].Spec.Event, steps[7].Spec.Next = "Succeeded", "again"
	check("all has gone well", "again", "")
}

// After a failover the clock of the next master may be behind; of branches side by side each counts; and what is at no place does no harm.
func TestOrderWithoutClocks(t *testing.T) {
	m, errs := asl.Parse([]byte(`{"StartAt":"m","States":{"m":{"Type":"Map","Next":"again","Catch":[{"ErrorEquals":["E"],"Next":"again"}],"ItemProcessor":{"StartAt":"a","States":{"a":{"Type":"Pass","End":true}}}},
		"again":{"Type":"Choice","Choices":[{"Variable":"$","IsNull":true,"Next":"end"}],"Default":"m"},"end":{"Type":"Succeed"}}}`), nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	at := func(seconds int64, s *minik8s.WorkflowStep) *minik8s.WorkflowStep {
		s.Spec.Time = metav1.NewMicroTime(time.Unix(seconds, 0))
		return s
	}
	first := []*minik8s.WorkflowStep{at(100, made("0-0", 0, "a", "Succeeded", "")), at(101, made("0-1", 0, "a", "Failed", "")), at(102, made("0-2", 0, "a", "Succeeded", "")), at(103, made("", 0, "m", "Caught", "again"))}
	then := []*minik8s.WorkflowStep{at(50, made("", 1, "again", "Succeeded", "m")), at(51, made("2-0", 0, "a", "Succeeded", "")), at(52, made("2-1", 0, "a", "Succeeded", "")), at(53, made("", 2, "m", "Failed", ""))}
	bad := []*minik8s.WorkflowStep{made("x", 0, "a", "Failed", ""), made("7", 0, "a", "Failed", "a"), made("7-", 0, "a", "Failed", "a"), made("-", 0, "a", "Failed", "a"), made("..", 0, "a", "Failed", "a"), made("9-99999999999999999999", 0, "a", "Failed", "a")}
	for i, x := range []struct {
		steps  []*minik8s.WorkflowStep
		failed string
	}{{first, "a"}, {slices.Concat(first, then), "m"}, {slices.Concat(then, first), "m"}, {slices.Concat(bad, then[:3], first), ""}} {
		taken, failed := TakenBy(m, x.steps, true), ""
		for _, name := range slices.Sorted(maps.Keys(taken.Failed)) {
			if taken.Failed[name] {
				failed += name
			}
		}
		if failed != x.failed || i > 0 && len(taken.States) == 0 {
			t.Errorf("%d: %q has failed: %+v", i, failed, taken)
		}
	}
}
