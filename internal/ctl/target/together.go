package target

import (
	"context"
	"slices"
	"strings"

	"minik8s/internal/api"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
)

// together are words under which the seed systems have what is of two kinds here: their GPU jobs were Jobs.
var together = map[string][]*api.Kind{"job": {api.GpuJobs}, "jobs": {api.GpuJobs}, "j": {api.GpuJobs}}

// Also returns the kinds that a word means beside the one that has it.
func Also(word string) []*api.Kind { return together[strings.ToLower(strings.TrimSpace(word))] }

// withName finds out of which of the kinds of a word an object is. It fails if there are objects of that name of several.
func withName(ctx context.Context, s *session.Session, kind *api.Kind, word, name string) (Target, error) {
	first := Target{Kind: kind, Name: name}
	others := Also(word)
	if len(others) == 0 {
		return first, nil
	}
	var there []Target
	for _, k := range append([]*api.Kind{kind}, others...) {
		t := Target{Kind: k, Name: name}
		if exists(ctx, s, t) {
			there = append(there, t)
		}
	}
	switch len(there) {
	case 0:
		return first, nil // whoever wants it will hear that it is not there
	case 1:
		return there[0], nil
	}
	var ways []string
	for _, t := range there {
		ways = append(ways, t.Kind.GR().String()+" "+name)
	}
	return first, exit.Usagef("%q are of several kinds, and %s is the name of one of each: say %s", word, name, strings.Join(ways, " or "))
}

// exists reports whether an object is there, as far as this user may see it.
func exists(ctx context.Context, s *session.Session, t Target) bool {
	obj, err := find(ctx, s, t)
	return err == nil && obj != nil
}

// There replaces, for those who only look, a kind whose word means others, too: by all of them that have objects in a
// scope, or by itself if none has.
func There(ctx context.Context, s *session.Session, targets []Target, scope Scope) ([]Target, error) {
	var out []Target
	for _, t := range targets {
		if t.Name != "" || len(t.also) == 0 {
			out = append(out, t)
			continue
		}
		var found []Target
		for _, k := range append([]*api.Kind{t.Kind}, t.also...) {
			if slices.ContainsFunc(targets, func(other Target) bool { return other.Kind == k && k != t.Kind }) {
				continue // it was asked for by its own name
			}
			opts, err := scope.Options(s, k)
			if err != nil {
				return nil, err
			}
			opts.Limit = 1
			// What is wrong with the kind itself is for whoever lists it; of the others it is as if there were none.
			if list, err := s.API.List(ctx, k, opts); err != nil && k == t.Kind || err == nil && len(list.Items) > 0 {
				found = append(found, Target{Kind: k})
			}
		}
		if len(found) == 0 {
			found = []Target{{Kind: t.Kind}}
		}
		out = append(out, found...)
	}
	return out, nil
}
