package asl

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/theory/jsonpath"
	"github.com/theory/jsonpath/registry"
	"github.com/theory/jsonpath/spec"
)

// path is a JSONPath into the input, or with $$ into the context object.
type path struct {
	text    string
	null    bool // InputPath and OutputPath may be null: then they give {}
	context bool
	one     bool // it names one value; otherwise it gives a list
	query   *jsonpath.Path
}

// Bounds of a path.
const (
	maxPath     = 1024 // bytes
	maxBrackets = 10   // in each other
)

// loose is a path that forerunners of RFC 9535 accept: names may have dashes and other marks.
var loose = regexp.MustCompile(`^\$(\.[^.\[\]*@()?,:\s'"$]+|\[-?[0-9]+\]|\['[^']*'\]|\["[^"]*"\])*$`)

var looseName = regexp.MustCompile(`\.([^.\[\]*@()?,:\s'"$]+)`)

// paths reads paths. It knows no function: what match takes, for one, has no bound, and the states language has none in its paths.
var paths = jsonpath.NewParser(jsonpath.WithRegistry(&registry.Registry{}))

func parsePath(text string) (*path, error) {
	p := &path{text: text}
	query := text
	if rest, ok := strings.CutPrefix(text, "$$"); ok {
		p.context, query = true, "$"+rest
	}
	switch {
	case !strings.HasPrefix(query, "$"):
		return nil, fmt.Errorf("expected a path that begins with $, as $.x")
	case len(query) > maxPath:
		return nil, fmt.Errorf("a path may have %d characters, and this one has %d", maxPath, len(query))
	}
	if at := tooDeep(query); at > 0 {
		return nil, fmt.Errorf("brackets may lie %d deep; at character %d there are more", maxBrackets, at)
	}
	q, err := paths.Parse(query)
	if err != nil && loose.MatchString(query) {
		q, err = paths.Parse(looseName.ReplaceAllString(query, `["$1"]`))
	}
	if err != nil {
		return nil, err
	}
	p.query, p.one = q, q.Query().Singular() != nil
	return p, checkFilters(q.Query())
}

// tooDeep is where brackets lie too deep in each other, or 0.
func tooDeep(text string) int {
	deep, quote := 0, rune(0)
	escaped := false
	for i, c := range text {
		switch {
		case escaped:
			escaped = false
		case quote != 0:
			if escaped = c == '\\'; c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '(' || c == '[':
			if deep++; deep > maxBrackets {
				return i + 1
			}
		case c == ')' || c == ']':
			deep--
		}
	}
	return 0
}

// find is what a path names. what stands for the path in the error, which has a name, if it names one value and there is none.
func (p *path) find(input any, c *Context, name, what string) (any, *Error) {
	v, missing, err := p.look(input, c)
	if missing {
		return nil, errorf(name, "%s %s names nothing in what the state has", what, p.text)
	}
	return v, err
}

// look evaluates a path. missing: it names one value, and there is none.
func (p *path) look(input any, c *Context) (v any, missing bool, err *Error) {
	if p == nil {
		return input, false, nil
	}
	if p.null {
		return map[string]any{}, false, nil
	}
	if p.context {
		input = c.Object
	}
	list := choose(p.query.Query(), input, c)
	switch {
	case c.over != nil:
		return nil, false, c.over
	case p.one && len(list) == 0:
		return nil, true, nil
	case p.one:
		return list[0], false, nil
	}
	if !c.small(list) { // it may have the same value many times
		return nil, false, c.over
	}
	return list, false, nil
}

// place is where a result is put: a path of names and indexes.
type place struct {
	text  string
	steps []any // string or int64; none: the result replaces all
}

func parsePlace(text string) (*place, error) {
	p, err := parsePath(text)
	if err != nil {
		return nil, err
	}
	if p.context {
		return nil, fmt.Errorf("a result cannot be put into the context object")
	}
	if !p.one {
		return nil, fmt.Errorf("expected a path to one place, without *, .., filters and slices")
	}
	out := &place{text: text}
	for _, segment := range p.query.Query().Segments() {
		switch s := segment.Selectors()[0].(type) {
		case spec.Name:
			out.steps = append(out.steps, string(s))
		case spec.Index:
			if s < 0 {
				return nil, fmt.Errorf("expected an index from 0 on")
			}
			out.steps = append(out.steps, int64(s))
		}
	}
	return out, nil
}

// put returns input with a value at the place. Nothing that input has is changed.
func (p *place) put(input, value any) (any, error) { return put(input, value, p.steps) }

func put(into, value any, steps []any) (any, error) {
	if len(steps) == 0 {
		return value, nil
	}
	switch step := steps[0].(type) {
	case string:
		m, ok := into.(map[string]any)
		if !ok && into != nil {
			return nil, fmt.Errorf("there is no object in which %q could be set", step)
		}
		below, err := put(m[step], value, steps[1:])
		if err != nil {
			return nil, err
		}
		out := maps.Clone(m)
		if out == nil {
			out = map[string]any{}
		}
		out[step] = below
		return out, nil
	default:
		i := step.(int64)
		list, ok := into.([]any)
		if !ok || i >= int64(len(list)) {
			return nil, fmt.Errorf("there is no list with an item %d", i)
		}
		below, err := put(list[i], value, steps[1:])
		if err != nil {
			return nil, err
		}
		out := slices.Clone(list)
		out[i] = below
		return out, nil
	}
}
