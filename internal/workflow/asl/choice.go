package asl

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Rule is a rule of a Choice, or a part of one.
type Rule struct {
	Next     string
	and, or  []Rule
	not      *Rule
	variable *path
	operator string
	value    any
	other    *path // of an operator whose name ends in Path
}

// tests are the kinds of comparison, without Path.
var orders = []string{"Equals", "LessThan", "GreaterThan", "LessThanEquals", "GreaterThanEquals"}

// Operators are the names of all comparisons.
var Operators = func() []string {
	out := []string{"BooleanEquals", "BooleanEqualsPath", "StringMatches", "IsNull", "IsPresent", "IsNumeric", "IsString", "IsBoolean", "IsTimestamp"}
	for _, kind := range []string{"String", "Numeric", "Timestamp"} {
		for _, order := range orders {
			out = append(out, kind+order, kind+order+"Path")
		}
	}
	slices.Sort(out)
	return out
}()

func parseRule(doc map[string]any, at *field.Path, top bool, depth int, errs *field.ErrorList) Rule {
	var r Rule
	bad := func(at *field.Path, v any, why string) { *errs = append(*errs, field.Invalid(at, v, why)) }
	if depth > maxDepth {
		bad(at, "", fmt.Sprintf("rules may lie %d deep", maxDepth))
		return r
	}
	found := 0
	for _, name := range sorted(doc) {
		v, here := doc[name], at.Child(name)
		switch {
		case name == "Comment":
		case name == "Next" && top:
			r.Next = stringAt(v, here, errs)
		case name == "Next":
			*errs = append(*errs, field.Forbidden(here, "only a whole rule has a next state, not a part of one"))
		case name == "Variable":
			text := stringAt(v, here, errs)
			p, err := parsePath(text)
			switch {
			case text == "":
			case err != nil:
				bad(here, text, err.Error())
			case !p.one:
				bad(here, text, "must be a path to one value")
			default:
				r.variable = p
			}
		case name == "And", name == "Or":
			found++
			list, ok := v.([]any)
			if !ok || len(list) == 0 {
				bad(here, text(v), "must be a list of rules")
				continue
			}
			for i, x := range list {
				part, ok := x.(map[string]any)
				if !ok {
					bad(here.Index(i), text(x), "must be a rule")
					continue
				}
				if rule := parseRule(part, here.Index(i), false, depth+1, errs); name == "And" {
					r.and = append(r.and, rule)
				} else {
					r.or = append(r.or, rule)
				}
			}
		case name == "Not":
			found++
			part, ok := v.(map[string]any)
			if !ok {
				bad(here, text(v), "must be a rule")
				continue
			}
			rule := parseRule(part, here, false, depth+1, errs)
			r.not = &rule
		case slices.Contains(Operators, name):
			found++
			r.operator, r.value = name, v
			r.parseValue(here, errs)
		default:
			*errs = append(*errs, unknown(here, name, append([]string{"And", "Or", "Not", "Variable", "Next"}, Operators...), "a rule"))
			found++
		}
	}
	switch {
	case found == 0:
		*errs = append(*errs, field.Required(at, "a comparison, as NumericEquals, or And, Or, Not"))
	case found > 1:
		bad(at, "", "must have one comparison; And joins several")
	case r.operator != "" && doc["Variable"] == nil:
		*errs = append(*errs, field.Required(at.Child("Variable"), "what is compared"))
	}
	if top && doc["Next"] == nil {
		*errs = append(*errs, field.Required(at.Child("Next"), "the state that follows"))
	}
	return r
}

// parseValue checks what a variable is compared with.
func (r *Rule) parseValue(at *field.Path, errs *field.ErrorList) {
	if strings.HasSuffix(r.operator, "Path") {
		s, _ := r.value.(string)
		p, err := parsePath(s)
		if err != nil || !p.one {
			*errs = append(*errs, field.Invalid(at, text(r.value), "must be a path to one value, as $.y"))
			return
		}
		r.other = p
		return
	}
	ok, want := false, ""
	switch {
	case strings.HasPrefix(r.operator, "String"):
		_, ok = r.value.(string)
		want = "a string"
	case strings.HasPrefix(r.operator, "Numeric"):
		_, ok = number(r.value)
		want = "a number"
	case strings.HasPrefix(r.operator, "Timestamp"):
		_, ok = timestamp(r.value)
		want = "a timestamp, as 2026-01-02T15:04:05Z"
	default:
		_, ok = r.value.(bool)
		want = "true or false"
	}
	if !ok {
		*errs = append(*errs, field.Invalid(at, text(r.value), "must be "+want))
	}
}

func timestamp(v any) (time.Time, bool) {
	s, ok := v.(string)
	if !ok {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	return t, err == nil
}

// holds reports whether a rule is true.
func (r *Rule) holds(input any, c *Context) (bool, *Error) {
	switch {
	case r.and != nil:
		for i := range r.and {
			if ok, err := r.and[i].holds(input, c); err != nil || !ok {
				return false, err
			}
		}
		return true, nil
	case r.or != nil:
		for i := range r.or {
			if ok, err := r.or[i].holds(input, c); err != nil || ok {
				return ok, err
			}
		}
		return false, nil
	case r.not != nil:
		ok, err := r.not.holds(input, c)
		return !ok, err
	}
	v, missing, err := r.variable.look(input, c)
	if err != nil {
		return false, err
	}
	if r.operator == "IsPresent" {
		return !missing == r.value.(bool), nil
	}
	if missing {
		return false, errorf(ErrRuntime, "the variable %s names nothing in the input", r.variable.text)
	}
	want, operator := r.value, r.operator
	if r.other != nil {
		if want, err = r.other.find(input, c, ErrRuntime, "the path"); err != nil {
			return false, err
		}
		operator = strings.TrimSuffix(operator, "Path")
	}
	for _, x := range []any{v, want} {
		if s, ok := x.(string); ok && !c.visit(len(s)/visitBytes) {
			return false, c.over
		}
	}
	return holds(operator, v, want), nil
}

// holds compares two values. Values of other types than the operator's are not equal, nor in any order.
func holds(operator string, v, want any) bool {
	is := func(ok bool) bool { return ok == want.(bool) }
	switch operator {
	case "IsNull":
		return is(v == nil)
	case "IsNumeric":
		_, ok := number(v)
		return is(ok)
	case "IsString":
		_, ok := v.(string)
		return is(ok)
	case "IsBoolean":
		_, ok := v.(bool)
		return is(ok)
	case "IsTimestamp":
		_, ok := timestamp(v)
		return is(ok)
	case "BooleanEquals":
		a, ok := v.(bool)
		b, also := want.(bool)
		return ok && also && a == b
	case "StringMatches":
		s, ok := v.(string)
		return ok && matches(s, want.(string))
	}
	var order int
	ok := false
	var test string
	switch {
	case strings.HasPrefix(operator, "String"):
		a, isA := v.(string)
		b, isB := want.(string)
		order, ok, test = compare(a, b), isA && isB, strings.TrimPrefix(operator, "String")
	case strings.HasPrefix(operator, "Numeric"):
		order, ok = compareNumbers(v, want)
		test = strings.TrimPrefix(operator, "Numeric")
	case strings.HasPrefix(operator, "Timestamp"):
		a, isA := timestamp(v)
		b, isB := timestamp(want)
		order, ok, test = a.Compare(b), isA && isB, strings.TrimPrefix(operator, "Timestamp")
	}
	if !ok {
		return false
	}
	switch test {
	case "Equals":
		return order == 0
	case "LessThan":
		return order < 0
	case "GreaterThan":
		return order > 0
	case "LessThanEquals":
		return order <= 0
	}
	return order >= 0
}

// matches reports whether s is as a pattern, in which * is any text, \* an asterisk and \\ a backslash.
func matches(s, pattern string) bool {
	var parts []string
	var part strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\' && i+1 < len(pattern):
			i++
			part.WriteByte(pattern[i])
		case c == '*':
			parts = append(parts, part.String())
			part.Reset()
		default:
			part.WriteByte(c)
		}
	}
	last := part.String()
	if len(parts) == 0 {
		return s == last
	}
	if !strings.HasPrefix(s, parts[0]) {
		return false
	}
	s = s[len(parts[0]):]
	for _, p := range parts[1:] {
		_, after, ok := strings.Cut(s, p)
		if !ok {
			return false
		}
		s = after
	}
	return strings.HasSuffix(s, last)
}

// signs are how people write a comparison.
var signs = map[string]string{"Equals": "==", "LessThan": "<", "GreaterThan": ">", "LessThanEquals": "<=", "GreaterThanEquals": ">="}

// Text is a rule as people write it: x == 10.
func (r *Rule) Text() string {
	all := func(rules []Rule, word string) string {
		out := make([]string, len(rules))
		for i := range rules {
			out[i] = rules[i].Text()
		}
		return "(" + strings.Join(out, " "+word+" ") + ")"
	}
	switch {
	case r.and != nil:
		return all(r.and, "and")
	case r.or != nil:
		return all(r.or, "or")
	case r.not != nil && r.not.variable != nil && strings.HasSuffix(r.not.operator, "Equals") && !strings.Contains(r.not.operator, "Than"):
		return strings.Replace(r.not.Text(), "==", "!=", 1)
	case r.not != nil:
		return "not " + r.not.Text()
	case r.variable == nil:
		return "?"
	}
	name, value := strings.TrimPrefix(r.variable.text, "$."), text(r.value)
	if s, ok := r.value.(string); ok && r.other == nil {
		value = fmt.Sprintf("%q", s)
	}
	base := strings.TrimSuffix(r.operator, "Path")
	for _, kind := range []string{"String", "Numeric", "Timestamp", "Boolean"} {
		if sign, ok := signs[strings.TrimPrefix(base, kind)]; ok && strings.HasPrefix(base, kind) {
			return name + " " + sign + " " + value
		}
	}
	return name + " " + r.operator + " " + value
}
