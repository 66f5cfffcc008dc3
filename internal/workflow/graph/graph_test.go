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

func step(branch string, n int64, state, event, next string) *minik8s.WorkflowStep {
	return &minik8s.WorkflowStep{Spec: minik8s.WorkflowStepSpec{Branch: branch, Number: n, State: state, Event: event, Next: next}}
}

func TestDrawings(t *testing.T) {
	m, errs := asl.Parse([]byte(definition), nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	steps := []*minik8s.WorkflowStep{step("", 0, "add", "Succeeded", "judge"), step("", 1, "judge", "Succeeded", "add"), step("", 2, "add", "Succeeded", "judge"),
		step("", 3, "judge", "Succeeded", "both"), step("4-1", 0, "r", "Succeeded", "r2")}
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
	svg := SVG(m, TakenBy(m, append(steps, step("", 4, "both", "Failed", "")), false))
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
		step("0-0", 0, "l", "Succeeded", "l2"), step("0-1.0-0", 0, "r", "Failed", ""), step("0-1", 0, "q", "Failed", ""), step("", 0, "p", "Retried", "p"),
		step("1-0", 0, "l", "Succeeded", "l2"), step("1-1.0-0", 0, "r", "Succeeded", "r2"), step("1-1.0-1", 0, "r", "Succeeded", "r2"),
	}
	for i, s := range steps {
		s.Spec.Time = metav1.NewMicroTime(time.Unix(int64(i), 0))
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
	steps = append(steps, step("", 1, "p", "Failed", ""))
	steps[len(steps)-1].Spec.Time = metav1.NewMicroTime(time.Unix(20, 0))
	check("after it", "", "p q")
	for _, s := range []*minik8s.WorkflowStep{step("1-1", 0, "q", "Succeeded", ""), step("1-0", 1, "l2", "Succeeded", "")} {
		s.Spec.Time = metav1.NewMicroTime(time.Unix(15, 0))
		steps = append(steps, s)
	}
	steps[7].Spec.Event, steps[7].Spec.Next = "Succeeded", "again"
	check("all has gone well", "again", "")
}
