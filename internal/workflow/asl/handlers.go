package asl

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// errorNames reads ErrorEquals.
func (p *parser) errorNames(doc map[string]any, at *field.Path, last bool) []string {
	here := at.Child("ErrorEquals")
	list, ok := doc["ErrorEquals"].([]any)
	if !ok || len(list) == 0 {
		p.errs = append(p.errs, field.Required(here, "the names of errors, as States.ALL"))
		return nil
	}
	var out []string
	for i, v := range list {
		name := stringAt(v, here.Index(i), &p.errs)
		if strings.HasPrefix(name, "States.") && !slices.Contains(Errors, name) {
			p.errs = append(p.errs, field.NotSupported(here.Index(i), name, Errors))
		}
		if name == ErrAll && (len(list) > 1 || !last) {
			p.bad(here.Index(i), name, "must stand alone, and in the last entry")
		}
		out = append(out, name)
	}
	return out
}

func (p *parser) entries(v any, at *field.Path, each func(doc map[string]any, at *field.Path, last bool)) {
	list, ok := v.([]any)
	if !ok {
		p.bad(at, text(v), "must be a list")
		return
	}
	for i, v := range list {
		doc, ok := v.(map[string]any)
		if !ok {
			p.bad(at.Index(i), text(v), "must be an object with ErrorEquals")
			continue
		}
		each(doc, at.Index(i), i == len(list)-1)
	}
}

func (p *parser) known(doc map[string]any, at *field.Path, what string, names ...string) {
	for _, key := range sorted(doc) {
		if !slices.Contains(names, key) {
			p.errs = append(p.errs, unknown(at.Child(key), key, names, what))
		}
	}
}

func (p *parser) retry(s *State, v any, at *field.Path) {
	p.entries(v, at, func(doc map[string]any, at *field.Path, last bool) {
		p.known(doc, at, "a retrier", "Comment", "ErrorEquals", "IntervalSeconds", "MaxAttempts", "BackoffRate", "MaxDelaySeconds", "JitterStrategy")
		r := Retrier{Errors: p.errorNames(doc, at, last), Interval: time.Second, Most: 3, Rate: 2}
		if v, ok := doc["IntervalSeconds"]; ok {
			r.Interval = p.seconds(v, at.Child("IntervalSeconds"), true).fixed()
		}
		if v, ok := doc["MaxAttempts"]; ok {
			n, ok := whole(v)
			if !ok || n < 0 || n > longest {
				p.bad(at.Child("MaxAttempts"), text(v), "must be a whole number from 0 on")
			}
			r.Most = int(n)
		}
		if v, ok := doc["BackoffRate"]; ok {
			if r.Rate, ok = number(v); !ok || r.Rate < 1 {
				p.bad(at.Child("BackoffRate"), text(v), "must be a number from 1 on")
			}
		}
		if v, ok := doc["MaxDelaySeconds"]; ok {
			if r.MaxDelay = p.seconds(v, at.Child("MaxDelaySeconds"), true).fixed(); r.MaxDelay > 0 && r.MaxDelay < r.Interval {
				p.bad(at.Child("MaxDelaySeconds"), text(v), "must be more than IntervalSeconds")
			}
		}
		switch v := doc["JitterStrategy"]; v {
		case nil, "NONE":
		case "FULL":
			r.Jitter = true
		default:
			p.errs = append(p.errs, field.NotSupported(at.Child("JitterStrategy"), text(v), []string{"FULL", "NONE"}))
		}
		s.Retry = append(s.Retry, r)
	})
}

func (p *parser) catch(s *State, v any, at *field.Path) {
	p.entries(v, at, func(doc map[string]any, at *field.Path, last bool) {
		p.known(doc, at, "a catcher", "Comment", "ErrorEquals", "Next", "ResultPath")
		c := Catcher{Errors: p.errorNames(doc, at, last), result: p.place(doc, at)}
		if v, ok := doc["Next"]; ok {
			c.Next = stringAt(v, at.Child("Next"), &p.errs)
		} else {
			p.errs = append(p.errs, field.Required(at.Child("Next"), "the state that follows"))
		}
		s.Catch = append(s.Catch, c)
	})
}
