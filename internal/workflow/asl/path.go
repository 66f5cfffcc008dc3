package asl

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/theory/jsonpath"
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

// loose is a path that forerunners of RFC 9535 accept: names may have dashes and other marks.
var loose = regexp.MustCompile(`^\$(\.[^.\[\]*@()?,:\s'"$]+|\[-?[0-9]+\]|\['[^']*'\]|\["[^"]*"\])*$`)

var looseName = regexp.MustCompile(`\.([^.\[\]*@()?,:\s'"$]+)`)

func parsePath(text string) (*path, error) {
	p := &path{text: text}
	query := text
	if rest, ok := strings.CutPrefix(text, "$$"); ok {
		p.context, query = true, "$"+rest
	}
	if !strings.HasPrefix(query, "$") {
		return nil, fmt.Errorf("expected a path that begins with $, as $.x")
	}
	q, err := jsonpath.Parse(query)
	if err != nil && loose.MatchString(query) {
		q, err = jsonpath.Parse(looseName.ReplaceAllString(query, `["$1"]`))
	}
	if err != nil {
		return nil, err
	}
	p.query, p.one = q, q.Query().Singular() != nil
	return p, nil
}

// find evaluates a path. missing: it names one value, and there is none.
func (p *path) find(input, context any) (v any, missing bool) {
	if p == nil {
		return input, false
	}
	if p.null {
		return map[string]any{}, false
	}
	if p.context {
		c, _ := context.(Context) //nolint:errcheck // without one there is nothing in it
		input = c.Object
	}
	list := p.query.Select(input)
	switch {
	case !p.one:
		return append(make([]any, 0, len(list)), list...), false
	case len(list) == 0:
		return nil, true
	}
	return list[0], false
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
