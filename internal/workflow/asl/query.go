package asl

import (
	"errors"
	"strings"

	"github.com/theory/jsonpath/spec"
)

// choose evaluates a path. The library reads paths and knows what a filter, a slice or a name means; the way through the values is our own,
// since the library's has no bound and meets the members of an object in another order each time. Here it is that of their names, so that a
// run that is resumed sees what it has seen before.
func choose(q *spec.PathQuery, root any, c *Context) []any {
	nodes := []any{root}
	for _, segment := range q.Segments() {
		w := walker{c: c, root: root, segment: segment, costs: make([]filterCost, len(segment.Selectors())), found: []any{}}
		for i, s := range segment.Selectors() {
			if f, ok := s.(*spec.FilterSelector); ok {
				w.costs[i].or(f.LogicalOr)
			}
		}
		for _, v := range nodes {
			if !w.visit(v) {
				return nil
			}
		}
		nodes = w.found
	}
	return nodes
}

// walker applies one segment of a path.
type walker struct {
	c       *Context
	root    any
	segment *spec.Segment
	costs   []filterCost // of those selectors that are filters
	found   []any
}

func (w *walker) visit(v any) bool {
	if !w.c.visit(1) {
		return false
	}
	for i, s := range w.segment.Selectors() {
		switch s := s.(type) {
		case spec.WildcardSelector:
			w.add(children(v)...)
		case *spec.FilterSelector:
			for _, x := range children(v) {
				if !w.costs[i].pay(w.c, x, w.root) {
					return false
				}
				if s.Eval(x, w.root) {
					w.add(x)
				}
			}
		case spec.SliceSelector:
			if list, ok := v.([]any); ok && w.c.visit(len(list)) {
				w.add(s.Select(list, w.root)...)
			}
		default: // a name, an index
			w.add(s.Select(v, w.root)...)
		}
		if w.c.over != nil {
			return false
		}
	}
	if w.segment.IsDescendant() {
		for _, x := range children(v) {
			if !w.visit(x) {
				return false
			}
		}
	}
	return true
}

func (w *walker) add(found ...any) {
	if w.c.visit(len(found)) {
		w.found = append(w.found, found...)
	}
}

// children are what is in a list, or in an object, in the order of its names.
func children(v any) []any {
	switch v := v.(type) {
	case []any:
		return v
	case map[string]any:
		out := make([]any, 0, len(v))
		for _, name := range sorted(v) {
			out = append(out, v[name])
		}
		return out
	}
	return nil
}

// filterCost is what a filter takes for each value: one for each of its terms, times what the term may compare.
type filterCost struct {
	terms int
	root  bool // a term begins with $, so that it may compare the whole input
	err   error
}

// errFilter is a filter whose cost has no bound.
var errFilter = errors.New("in a filter a path must be to one value, as @.price: without *, .., slices and filters")

func (f *filterCost) or(or spec.LogicalOr) {
	for _, and := range or {
		for _, e := range and {
			f.terms++
			var q *spec.PathQuery
			switch e := e.(type) {
			case *spec.ParenExpr:
				f.or(e.LogicalOr)
			case *spec.NotParenExpr:
				f.or(e.LogicalOr)
			case *spec.ExistExpr:
				q = e.PathQuery
			case *spec.NonExistExpr:
				q = e.PathQuery
			case *spec.CompExpr:
				f.root = f.root || strings.HasPrefix(e.String(), "$")
			default:
				f.err = errFilter
			}
			if q != nil && q.Singular() == nil {
				f.err = errFilter
			}
		}
	}
}

func (f *filterCost) pay(c *Context, v, root any) bool {
	n := weight(c, v)
	if f.root {
		n += weight(c, root)
	}
	return c.visit(f.terms * n)
}

// weight is how many values are in v.
func weight(c *Context, v any) int {
	n := 1
	if s, ok := v.(string); ok {
		n += len(s) / visitBytes
	}
	if !c.visit(n) {
		return n
	}
	for _, x := range children(v) {
		if n += weight(c, x); c.over != nil {
			break
		}
	}
	return n
}

// checkFilters refuses filters whose cost has no bound.
func checkFilters(q *spec.PathQuery) error {
	for _, segment := range q.Segments() {
		for _, s := range segment.Selectors() {
			if f, ok := s.(*spec.FilterSelector); ok {
				var cost filterCost
				if cost.or(f.LogicalOr); cost.err != nil {
					return cost.err
				}
			}
		}
	}
	return nil
}
