package asl

import (
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
	eval(input, context any) (any, *Error)
}

type constant struct{ value any }

func (c constant) eval(any, any) (any, *Error) { return c.value, nil }

func (p *path) eval(input, context any) (any, *Error) {
	v, missing := p.find(input, context)
	if missing {
		return nil, errorf(ErrParameterPath, "the path %s names nothing in the input", p.text)
	}
	return v, nil
}

// parseExpression reads what stands behind a name with .$.
func parseExpression(text string) (expression, error) {
	if strings.HasPrefix(text, "$") {
		return parsePath(text)
	}
	return parseIntrinsic(text)
}

func parseTemplate(v any, at *field.Path, errs *field.ErrorList) *template {
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
				t.fields[name] = parseTemplate(value, at.Child(name), errs)
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
			t.items = append(t.items, parseTemplate(item, at.Index(i), errs))
		}
		return t
	}
	return &template{fixed: v}
}

// fill makes the value.
func (t *template) fill(input, context any) (any, *Error) {
	switch {
	case t.from != nil:
		return t.from.eval(input, context)
	case t.fields != nil:
		out := make(map[string]any, len(t.fields))
		for _, name := range sorted(t.fields) {
			v, err := t.fields[name].fill(input, context)
			if err != nil {
				return nil, err
			}
			out[name] = v
		}
		return out, nil
	case t.items != nil:
		out := make([]any, 0, len(t.items))
		for _, item := range t.items {
			v, err := item.fill(input, context)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	}
	return t.fixed, nil
}
