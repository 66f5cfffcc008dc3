package asl

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// template is a JSON value in which fields whose names end in .$ have a path or an intrinsic function.
type template struct {
	fixed  any // if there is nothing else
	fields map[string]*template
	items  []*template
	from   expression
}

// expression is what gives a value: a path, an intrinsic function, or a plain value in one.
type expression interface {
	eval(input any, c *Context) (any, *Error)
}

type constant struct{ value any }

func (x constant) eval(any, *Context) (any, *Error) { return x.value, nil }

func (p *path) eval(input any, c *Context) (any, *Error) {
	return p.find(input, c, ErrParameterPath, "the path")
}

// parseExpression reads what stands behind a name with .$.
func parseExpression(text string) (expression, error) {
	if strings.HasPrefix(text, "$") {
		return parsePath(text)
	}
	return parseIntrinsic(text)
}

// maxTemplate is how deep the values of a template may lie in each other.
const maxTemplate = 100

func parseTemplate(v any, at *field.Path, errs *field.ErrorList) *template {
	return parseDeep(v, at, 1, errs)
}

func parseDeep(v any, at *field.Path, depth int, errs *field.ErrorList) *template {
	if depth > maxTemplate {
		*errs = append(*errs, field.Invalid(at, "", fmt.Sprintf("values may lie %d deep", maxTemplate)))
		return &template{}
	}
	switch v := v.(type) {
	case map[string]any:
		t := &template{fields: map[string]*template{}}
		for _, name := range sorted(v) {
			value, plain := v[name], strings.TrimSuffix(name, ".$")
			if _, twice := t.fields[plain]; twice || plain != name && v[plain] != nil {
				*errs = append(*errs, field.Duplicate(at.Child(name), plain))
				continue
			}
			if plain == name {
				t.fields[name] = parseDeep(value, at.Child(name), depth+1, errs)
				continue
			}
			text, ok := value.(string)
			if !ok {
				*errs = append(*errs, field.Invalid(at.Child(name), value, "must be a path, or an intrinsic function, since its name ends in .$"))
				continue
			}
			from, err := parseExpression(text)
			if err != nil {
				*errs = append(*errs, field.Invalid(at.Child(name), text, err.Error()))
				continue
			}
			t.fields[plain] = &template{from: from}
		}
		return t
	case []any:
		t := &template{items: []*template{}}
		for i, item := range v {
			t.items = append(t.items, parseDeep(item, at.Index(i), depth+1, errs))
		}
		return t
	}
	return &template{fixed: v}
}

// fill makes the value.
func (t *template) fill(input any, c *Context) (any, *Error) {
	v, err := t.value(input, c)
	if err == nil && !c.small(v) {
		return nil, c.over
	}
	return v, err
}

func (t *template) value(input any, c *Context) (any, *Error) {
	switch {
	case t.from != nil:
		return t.from.eval(input, c)
	case t.fields != nil:
		out := make(map[string]any, len(t.fields))
		for _, name := range sorted(t.fields) {
			v, err := t.fields[name].value(input, c)
			if err != nil {
				return nil, err
			}
			out[name] = v
		}
		return out, nil
	case t.items != nil:
		out := make([]any, 0, len(t.items))
		for _, item := range t.items {
			v, err := item.value(input, c)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	}
	return t.fixed, nil
}
