package graph

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

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
