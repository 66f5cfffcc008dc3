package asl

import (
	"fmt"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (p *parser) task(s *State, doc map[string]any, at *field.Path) {
	here := at.Child("Resource")
	if doc["Resource"] == nil {
		p.errs = append(p.errs, field.Required(here, "the function that is called"))
	} else if s.Function = stringAt(doc["Resource"], here, &p.errs); strings.HasPrefix(s.Function, "arn:") {
		name, ok := lambda(s.Function)
		if !ok {
			p.bad(here, s.Function, "must be a function of this cluster; of ARNs those of Lambda functions are read, as arn:aws:lambda:REGION:ACCOUNT:function:NAME")
		}
		s.Function = name
	}
	s.timeout, s.heartbeat = p.either(doc, "TimeoutSeconds", at, true), p.either(doc, "HeartbeatSeconds", at, true)
	if s.heartbeat.seconds > 0 && s.timeout.seconds > 0 && s.heartbeat.seconds >= s.timeout.seconds {
		p.bad(at.Child("HeartbeatSeconds"), s.heartbeat.seconds, "must be less than TimeoutSeconds")
	}
}

// lambda is the name in a Lambda function's ARN.
func lambda(arn string) (string, bool) {
	parts := strings.Split(arn, ":")
	if len(parts) < 7 || parts[2] != "lambda" || parts[5] != "function" {
		return "", false
	}
	return parts[6], parts[6] != ""
}

func (p *parser) choice(s *State, doc map[string]any, at *field.Path) {
	if v, ok := doc["Default"]; ok {
		s.Default = stringAt(v, at.Child("Default"), &p.errs)
	}
	here := at.Child("Choices")
	list, ok := doc["Choices"].([]any)
	if !ok || len(list) == 0 {
		p.errs = append(p.errs, field.Required(here, "the rules, of which the first that is true counts"))
		return
	}
	for i, v := range list {
		rule, ok := v.(map[string]any)
		if !ok {
			p.bad(here.Index(i), text(v), "must be a rule")
			continue
		}
		s.Choices = append(s.Choices, parseRule(rule, here.Index(i), true, 1, &p.errs))
	}
}

func (p *parser) wait(s *State, doc map[string]any, at *field.Path) {
	var given []string
	for _, name := range []string{"Seconds", "SecondsPath", "Timestamp", "TimestampPath"} {
		if _, ok := doc[name]; ok {
			given = append(given, name)
		}
	}
	if len(given) != 1 {
		p.bad(at, join(given), "a Wait state has one of Seconds, SecondsPath, Timestamp, TimestampPath")
	}
	s.wait, s.untilPath = p.either(doc, "Seconds", at, false), p.single(doc, "TimestampPath", at)
	if v, ok := doc["Timestamp"]; ok {
		t, ok := timestamp(v)
		if !ok {
			p.bad(at.Child("Timestamp"), text(v), "must be a time, as 2026-01-02T15:04:05Z")
		}
		s.until = &t
	}
}

// words reads NAME, or NAMEPath, which may be an intrinsic function.
func (p *parser) words(doc map[string]any, name string, at *field.Path) (string, expression) {
	fixed := ""
	if v, ok := doc[name]; ok {
		fixed = stringAt(v, at.Child(name), &p.errs)
	}
	v, ok := doc[name+"Path"]
	if !ok {
		return fixed, nil
	}
	if fixed != "" {
		p.bad(at.Child(name+"Path"), text(v), "may not be set beside "+name)
	}
	s, _ := v.(string)
	from, err := parseExpression(s)
	if err != nil {
		p.bad(at.Child(name+"Path"), text(v), err.Error())
		return "", nil
	}
	return "", from
}

func (p *parser) parallel(s *State, doc map[string]any, at *field.Path, depth int) {
	here := at.Child("Branches")
	list, ok := doc["Branches"].([]any)
	if !ok || len(list) == 0 || len(list) > maxItems {
		p.errs = append(p.errs, field.Required(here, fmt.Sprintf("the machines that run side by side, up to %d", maxItems)))
		return
	}
	for i, v := range list {
		m, ok := v.(map[string]any)
		if !ok {
			p.bad(here.Index(i), text(v), "must be a state machine")
			continue
		}
		s.Branches = append(s.Branches, p.machine(m, here.Index(i), depth+1, branchFields))
	}
}

func (p *parser) mapState(s *State, doc map[string]any, at *field.Path, depth int) {
	name := "ItemProcessor"
	if _, ok := doc[name]; !ok {
		name = "Iterator" // its name in older definitions
	} else if doc["Iterator"] != nil {
		p.bad(at.Child("Iterator"), "", "may not be set beside ItemProcessor")
	}
	if m, ok := doc[name].(map[string]any); ok {
		if config, _ := m["ProcessorConfig"].(map[string]any); config["Mode"] != nil && config["Mode"] != "INLINE" {
			p.errs = append(p.errs, field.NotSupported(at.Child(name).Child("ProcessorConfig", "Mode"), text(config["Mode"]), []string{"INLINE"}))
		}
		s.Branches = []*Machine{p.machine(m, at.Child(name), depth+1, itemFields)}
	} else {
		p.errs = append(p.errs, field.Required(at.Child("ItemProcessor"), "the machine that each item goes through"))
	}
	s.items = p.path(doc, "ItemsPath", at, false)
	if v, ok := doc["ItemSelector"]; ok {
		s.selector = parseTemplate(v, at.Child("ItemSelector"), &p.errs)
		if s.parameters != nil {
			p.bad(at.Child("Parameters"), "", "may not be set beside ItemSelector")
		}
	} else if s.parameters != nil { // its name in older definitions
		s.selector = s.parameters
	}
	s.parameters = nil
	s.concurrency = p.either(doc, "MaxConcurrency", at, false)
	if n := s.concurrency.seconds; n != math.Trunc(n) {
		p.bad(at.Child("MaxConcurrency"), n, "must be a whole number")
	}
}
