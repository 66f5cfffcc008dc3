package asl

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/suggest"
)

// Parse reads a definition. It names every mistake; only without any is the machine complete.
func Parse(data []byte, at *field.Path) (*Machine, field.ErrorList) {
	v, err := Decode(data)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(at, string(data[:min(len(data), 100)]), "must be JSON: "+err.Error())}
	}
	doc, ok := v.(map[string]any)
	if !ok {
		return nil, field.ErrorList{field.Required(at, "a state machine: an object with StartAt and States")}
	}
	p := &parser{names: map[string]string{}}
	m := p.machine(doc, at, 1, machineFields)
	return m, p.errs
}

// parser collects mistakes.
type parser struct {
	errs  field.ErrorList
	names map[string]string // each state's name, and where it is: it is the only one in all machines
}

var (
	machineFields = []string{"Comment", "StartAt", "States", "TimeoutSeconds", "Version", "QueryLanguage"}
	branchFields  = []string{"Comment", "StartAt", "States"}
	itemFields    = []string{"Comment", "StartAt", "States", "ProcessorConfig"}
)

// jsonata are fields that only JSONata has, and variables, which we do not serve.
var jsonata = []string{"Arguments", "Output", "Assign", "Items"}

// stateFields are the fields of each type of state, beside Type, Comment, QueryLanguage.
var stateFields = map[string][]string{
	Task:     {"Resource", "Next", "End", "Left", "Right", "InputPath", "OutputPath", "ResultPath", "Parameters", "ResultSelector", "Retry", "Catch", "TimeoutSeconds", "TimeoutSecondsPath", "HeartbeatSeconds", "HeartbeatSecondsPath"},
	Parallel: {"Branches", "Next", "End", "InputPath", "OutputPath", "ResultPath", "Parameters", "ResultSelector", "Retry", "Catch"},
	Map:      {"ItemProcessor", "Iterator", "ItemsPath", "ItemSelector", "MaxConcurrency", "MaxConcurrencyPath", "Next", "End", "InputPath", "OutputPath", "ResultPath", "Parameters", "ResultSelector", "Retry", "Catch"},
	Pass:     {"Result", "Next", "End", "InputPath", "OutputPath", "ResultPath", "Parameters"},
	Wait:     {"Seconds", "SecondsPath", "Timestamp", "TimestampPath", "Next", "End", "InputPath", "OutputPath"},
	Choice:   {"Choices", "Default", "InputPath", "OutputPath"},
	Succeed:  {"InputPath", "OutputPath"},
	Fail:     {"Error", "Cause", "ErrorPath", "CausePath"},
}

func unknown(at *field.Path, name string, known []string, what string) *field.Error {
	if slices.Contains(jsonata, name) {
		return field.Forbidden(at, "only JSONata and variables have it, which are not served: write paths (QueryLanguage JSONPath)")
	}
	hint := ""
	if near := suggest.Nearest(name, known); len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, ", ") + "?"
	}
	return field.Forbidden(at, what+" has no such field"+hint)
}

func (p *parser) bad(at *field.Path, v any, why string) {
	p.errs = append(p.errs, field.Invalid(at, v, why))
}

func stringAt(v any, at *field.Path, errs *field.ErrorList) string {
	s, ok := v.(string)
	if !ok || s == "" {
		*errs = append(*errs, field.Invalid(at, text(v), "must be a text"))
	}
	return s
}

func (p *parser) machine(doc map[string]any, at *field.Path, depth int, known []string) *Machine {
	m := &Machine{States: map[string]*State{}}
	if depth > maxDepth {
		p.bad(at, "", fmt.Sprintf("machines may lie %d deep", maxDepth))
		return m
	}
	for _, name := range sorted(doc) {
		if !slices.Contains(known, name) {
			p.errs = append(p.errs, unknown(at.Child(name), name, known, "a state machine"))
		}
	}
	m.Comment, _ = doc["Comment"].(string)
	p.language(doc, at)
	if v, ok := doc["Version"]; ok && v != "1.0" {
		p.errs = append(p.errs, field.NotSupported(at.Child("Version"), text(v), []string{"1.0"}))
	}
	if v, ok := doc["TimeoutSeconds"]; ok {
		m.Timeout = p.seconds(v, at.Child("TimeoutSeconds"), true).fixed()
	}
	states, ok := doc["States"].(map[string]any)
	if !ok || len(states) == 0 {
		p.errs = append(p.errs, field.Required(at.Child("States"), "the states, by their names"))
		return m
	}
	for _, name := range sorted(states) {
		here := at.Child("States").Key(name)
		if name == "" || len(name) > maxStateName || name == Return {
			p.bad(here, name, fmt.Sprintf("a state's name has 1 to %d characters, and is not %s", maxStateName, Return))
		}
		if other, twice := p.names[name]; twice {
			p.bad(here, name, "the name is another state's too: "+other)
		}
		p.names[name] = here.String()
		if len(p.names) > MaxStates {
			p.bad(at.Child("States"), len(p.names), fmt.Sprintf("there may be %d states", MaxStates))
			return m
		}
		s, ok := states[name].(map[string]any)
		if !ok {
			p.bad(here, text(states[name]), "must be a state: an object with Type")
			continue
		}
		m.States[name] = p.state(name, s, here, depth)
	}
	if v, ok := doc["StartAt"]; !ok {
		p.errs = append(p.errs, field.Required(at.Child("StartAt"), "the state that comes first"))
	} else {
		m.StartAt = stringAt(v, at.Child("StartAt"), &p.errs)
	}
	p.check(m, at)
	return m
}

func (p *parser) language(doc map[string]any, at *field.Path) {
	switch v := doc["QueryLanguage"]; v {
	case nil, "JSONPath":
	case "JSONata":
		p.errs = append(p.errs, field.Forbidden(at.Child("QueryLanguage"), "JSONata is not served: write paths (QueryLanguage JSONPath)"))
	default:
		p.errs = append(p.errs, field.NotSupported(at.Child("QueryLanguage"), text(v), []string{"JSONPath"}))
	}
}

func (p *parser) state(name string, doc map[string]any, at *field.Path, depth int) *State {
	s := &State{Name: name}
	s.Comment, _ = doc["Comment"].(string)
	p.language(doc, at)
	s.Type, _ = doc["Type"].(string)
	known, ok := stateFields[s.Type]
	if !ok {
		p.errs = append(p.errs, field.NotSupported(at.Child("Type"), text(doc["Type"]), sorted(stateFields)))
		return s
	}
	for _, key := range sorted(doc) {
		switch key {
		case "Type", "Comment", "QueryLanguage":
			continue
		}
		if !slices.Contains(known, key) {
			p.errs = append(p.errs, unknown(at.Child(key), key, known, "a "+s.Type+" state"))
		}
	}
	has := func(key string) bool { _, ok := doc[key]; return ok && slices.Contains(known, key) }
	s.input, s.output = p.path(doc, "InputPath", at, true), p.path(doc, "OutputPath", at, true)
	s.result = p.place(doc, at)
	if has("Parameters") {
		s.parameters = parseTemplate(doc["Parameters"], at.Child("Parameters"), &p.errs)
	}
	if has("ResultSelector") {
		s.resultSelector = parseTemplate(doc["ResultSelector"], at.Child("ResultSelector"), &p.errs)
	}
	p.following(s, doc, at, known)
	if has("Retry") {
		p.retry(s, doc["Retry"], at.Child("Retry"))
	}
	if has("Catch") {
		p.catch(s, doc["Catch"], at.Child("Catch"))
	}
	switch s.Type {
	case Task:
		p.task(s, doc, at)
	case Choice:
		p.choice(s, doc, at)
	case Wait:
		p.wait(s, doc, at)
	case Pass:
		s.fixed, s.hasFixed = doc["Result"]
	case Fail:
		s.err, s.errPath = p.words(doc, "Error", at)
		s.cause, s.causePath = p.words(doc, "Cause", at)
	case Parallel:
		p.parallel(s, doc, at, depth)
	case Map:
		p.mapState(s, doc, at, depth)
	}
	return s
}

// following reads Next, End, Left and Right.
func (p *parser) following(s *State, doc map[string]any, at *field.Path, known []string) {
	if !slices.Contains(known, "Next") {
		return
	}
	var given []string
	for _, name := range []string{"Next", "End", "Left", "Right"} {
		if v, ok := doc[name]; ok && slices.Contains(known, name) {
			given = append(given, name)
			switch name {
			case "Next":
				s.Next = stringAt(v, at.Child(name), &p.errs)
			case "Left":
				s.Left = stringAt(v, at.Child(name), &p.errs)
			case "Right":
				s.Right = stringAt(v, at.Child(name), &p.errs)
			case "End":
				if s.End, ok = v.(bool); !ok || !s.End {
					p.bad(at.Child(name), text(v), "must be true, or absent")
				}
			}
		}
	}
	switch {
	case len(given) == 0:
		p.errs = append(p.errs, field.Required(at.Child("Next"), "the state that follows, or End: true"))
	case slices.Equal(given, []string{"Left", "Right"}):
	case slices.Equal(given, []string{"Left"}), slices.Equal(given, []string{"Right"}):
		p.errs = append(p.errs, field.Required(at, "Left and Right belong together; RETURN is the end"))
	case len(given) > 1:
		p.bad(at, join(given), "a state has Next, or End, or Left and Right")
	}
}

func (p *parser) path(doc map[string]any, name string, at *field.Path, mayBeNull bool) *path {
	v, ok := doc[name]
	switch {
	case !ok:
		return nil
	case v == nil && mayBeNull:
		return &path{null: true, text: "null"}
	}
	s, _ := v.(string)
	out, err := parsePath(s)
	if err != nil {
		p.bad(at.Child(name), text(v), "must be a path: "+err.Error())
		return nil
	}
	return out
}

// single is a path to one value.
func (p *parser) single(doc map[string]any, name string, at *field.Path) *path {
	out := p.path(doc, name, at, false)
	if out != nil && !out.one {
		p.bad(at.Child(name), out.text, "must be a path to one value, without *, .., filters and slices")
	}
	return out
}

func (p *parser) place(doc map[string]any, at *field.Path) *place {
	v, ok := doc["ResultPath"]
	if !ok {
		return &place{text: "$"}
	}
	if v == nil {
		return nil
	}
	s, _ := v.(string)
	out, err := parsePlace(s)
	if err != nil {
		p.bad(at.Child("ResultPath"), text(v), "must be a path, or null: "+err.Error())
	}
	return out
}

// longest is the longest that anything may take, in seconds.
const longest = 99999999

func (p *parser) seconds(v any, at *field.Path, positive bool) duration {
	n, ok := number(v)
	if !ok || n < 0 || positive && n == 0 || n > longest {
		p.bad(at, text(v), fmt.Sprintf("must be a number of seconds up to %d", longest))
		return duration{}
	}
	return duration{seconds: n, given: true}
}

func (d duration) fixed() time.Duration { return time.Duration(d.seconds * float64(time.Second)) }

// either reads NAME or NAMEPath.
func (p *parser) either(doc map[string]any, name string, at *field.Path, positive bool) duration {
	_, given := doc[name]
	if from := p.single(doc, name+"Path", at); from != nil {
		if given {
			p.bad(at.Child(name+"Path"), from.text, "may not be set beside "+name)
		}
		return duration{path: from, given: true}
	}
	if !given {
		return duration{}
	}
	return p.seconds(doc[name], at.Child(name), positive)
}
