package target

import (
	"context"
	"strings"

	"minik8s/internal/api"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
)

// Target is what an argument names: an object, or without a name all objects of a kind.
type Target struct {
	Kind *api.Kind
	Name string
	// also are the kinds that the word for all objects means, too; see There.
	also []*api.Kind
}

// Parse reads KINDS, KIND NAME..., or KIND/NAME... It fails if a kind is unknown or the forms are mixed.
func Parse(ctx context.Context, s *session.Session, args []string) ([]Target, error) {
	if len(args) == 0 {
		return nil, exit.Usagef("which kind? One of: %s", list(api.Kinds))
	}
	var out []Target
	if word, _, ok := strings.Cut(args[0], "/"); ok && !strings.Contains(word, ",") {
		for _, arg := range args {
			word, name, ok := strings.Cut(arg, "/")
			if !ok || name == "" {
				return nil, exit.Usagef("%q is no KIND/NAME, as the other arguments are", arg)
			}
			kind, err := Kind(ctx, s, word)
			if err != nil {
				return nil, err
			}
			t, err := withName(ctx, s, kind, word, name)
			if err != nil {
				return nil, err
			}
			out = append(out, t)
		}
		return out, nil
	}
	kinds, err := Kinds(ctx, s, args[0])
	if err != nil {
		return nil, err
	}
	if len(args) == 1 {
		for _, k := range kinds {
			out = append(out, Target{Kind: k})
		}
		for _, word := range strings.Split(args[0], ",") {
			for i := range out {
				if out[i].Kind == api.Find(kinds, word) {
					out[i].also = Also(word)
				}
			}
		}
		return out, nil
	}
	if len(kinds) > 1 {
		return nil, exit.Usagef("a name needs one kind: %q are %d; write KIND/NAME for each", args[0], len(kinds))
	}
	for _, name := range args[1:] {
		// "pod pod/web" results from pasting another command's output.
		if word, rest, ok := strings.Cut(name, "/"); ok && api.Find(kinds, word) != nil {
			name = rest
		}
		t, err := withName(ctx, s, kinds[0], args[0], name)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}
