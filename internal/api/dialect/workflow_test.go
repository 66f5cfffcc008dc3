package dialect

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"minik8s/internal/api"
	"minik8s/internal/workflow/asl"
)

// definition is what a workflow of a seed system becomes.
func definition(t *testing.T, manifest string) (spec map[string]any, m *asl.Machine) {
	t.Helper()
	doc := parseJSON(t, []byte(manifest))
	if _, err := For(api.Workflows)(doc); err != nil {
		t.Fatal(err)
	}
	spec = object(doc["spec"])
	raw, err := json.Marshal(spec["definition"])
	if err != nil {
		t.Fatal(err)
	}
	m, errs := asl.Parse(raw, nil)
	if len(errs) > 0 {
		t.Fatal(string(raw), errs.ToAggregate())
	}
	for key := range doc {
		if key != "apiVersion" && key != "kind" && key != "metadata" && key != "spec" {
			t.Errorf("%s is still there", key)
		}
	}
	return spec, m
}

// The first seed system's workflow, word for word.
func TestFirstWorkflow(t *testing.T) {
	raw, err := os.ReadFile(manifests + "/x-workflow.json")
	if err != nil {
		t.Fatal(err)
	}
	spec, m := definition(t, string(raw))
	if params := object(spec["params"]); params["x"] != json.Number("5") {
		t.Errorf("params: %v", spec["params"])
	}
	if got := strings.Join(m.Functions(), " "); got != "addFive printEquals printNotEquals" {
		t.Errorf("it calls %s", got)
	}
	for input, want := range map[int64]string{10: "printEquals", 11: "printNotEquals"} {
		if got, err := m.States["judge"].Choose(map[string]any{"x": input}, new(asl.Context)); err != nil || got != want {
			t.Errorf("%d: %q %v", input, got, err)
		}
	}
	if s := m.States["addFive"]; len(s.Retry) != 1 || s.Retry[0].Most != 4 || s.Retry[0].Interval.Seconds() != 5 {
		t.Errorf("a Task is tried again as %+v", s.Retry)
	}
}

// Its other spellings: every operator, quoted numbers, paths. No true rule ends the run.
func TestFirstOperators(t *testing.T) {
	for _, x := range []struct {
		rule    string
		yes, no any
	}{
		{`"numericEquals":"10"`, int64(10), int64(11)}, {`"numericNotEquals":10`, int64(11), int64(10)},
		{`"numericLessThan":10`, int64(9), int64(10)}, {`"numericGreaterThan":10`, int64(11), int64(10)},
		{`"stringEquals":"a"`, "a", "b"}, {`"stringNotEquals":"a"`, "b", "a"}, {`"stringLessThan":"b"`, "a", "b"}, {`"stringGreaterThan":"b"`, "c", "b"},
		{`"booleanEquals":true`, true, false}, {`"booleanNotEquals":"true"`, false, true}, {`"booleanLessThan":true`, false, true}, {`"booleanGreaterThan":false`, true, false},
		{`"booleanLessThan":false`, nil, false},
	} {
		_, m := definition(t, `{"kind":"Workflow","metadata":{"name":"w"},"startAt":"c","nodes":{"c":{"type":"Choice","choices":[{"variable":"$.result",`+x.rule+`,"next":"f"}]},"f":{"type":"Task"}}}`)
		for v, want := range map[any]string{x.yes: "f", x.no: "end"} {
			if v == nil {
				continue
			}
			if got, err := m.States["c"].Choose(map[string]any{"result": v}, new(asl.Context)); err != nil || got != want {
				t.Errorf("%s with %v: %q %v", x.rule, v, got, err)
			}
		}
	}
	for _, word := range []string{"NaN", "Inf", "0x10", "1_0", "null", "", "+1", "1e"} { // none of JSON's numbers, though others read them
		doc := parseJSON(t, []byte(`{"kind":"Workflow","metadata":{"name":"w"},"startAt":"c","nodes":{"c":{"type":"Choice","choices":[{"variable":"x","numericEquals":"`+word+`","next":"f"}]},"f":{"type":"Task"}}}`))
		if _, err := For(api.Workflows)(doc); err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(object(doc["spec"])["definition"])
		if err != nil {
			t.Errorf("%q: %v", word, err)
			continue
		}
		if _, errs := asl.Parse(raw, nil); !strings.Contains(fmt.Sprint(errs.ToAggregate()), "Choices[0].NumericEquals: Invalid value: \""+word+"\": must be a number") {
			t.Errorf("%q: %v", word, errs)
		}
	}
	doc := parseJSON(t, []byte(`{"kind":"Workflow","metadata":{"name":"w"},"startAt":"c","nodes":{"c":{"type":"Choice","choices":[{"variable":"x","numericAbove":1,"next":"f"}]},"f":{"type":"Task"}}}`))
	if _, err := For(api.Workflows)(doc); err != nil {
		t.Fatal(err)
	}
	raw, _ := json.Marshal(object(doc["spec"])["definition"])
	if _, errs := asl.Parse(raw, nil); !strings.Contains(errs.ToAggregate().Error(), "NumericAbove") {
		t.Errorf("an unknown operator: %v", errs)
	}
}

// The second seed system's chains: a loop until check says no.
func TestSecondBranches(t *testing.T) {
	_, m := definition(t, `{"kind":"Workflow","metadata":{"name":"w"},"startAt":"is_hello","nodes":{
		"is_hello":{"type":"Task","LEFT_BRANCH":"append_world","RIGHT_BRANCH":"RETURN"},
		"append_world":{"type":"Task","left":"is_hello"}}}`)
	s := m.States["is_hello"]
	if s.Following("left") != "append_world" || s.Following("right") != "" || m.States["append_world"].Following("") != "" || m.States["append_world"].Following("left") != "is_hello" {
		t.Errorf("%+v", m.States)
	}
}
