package target

import (
	"context"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
)

// Scope narrows a list of objects.
type Scope struct {
	AllNamespaces  bool
	Labels, Fields string // selectors, as they are written
	// Looks: nothing is done to the objects. Then a word stands for all kinds that it means; see There.
	Looks bool
}

// Options returns the list options of a scope.
func (sc Scope) Options(s *session.Session, kind *api.Kind) (client.ListOptions, error) {
	opts := client.ListOptions{Namespace: s.NamespaceFor(kind)}
	if sc.AllNamespaces {
		opts.Namespace = ""
	}
	var err error
	if sc.Labels != "" {
		if opts.Labels, err = labels.Parse(sc.Labels); err != nil {
			return opts, exit.Usagef("the selector %q: %v", sc.Labels, err)
		}
	}
	if sc.Fields != "" {
		if opts.Fields, err = fields.ParseSelector(sc.Fields); err != nil {
			return opts, exit.Usagef("the field selector %q: %v", sc.Fields, err)
		}
	}
	return opts, nil
}

// Pick finds the objects that arguments and a scope select. Without a name or a selector it selects all objects of a
// kind, and fails unless all is true.
func Pick(ctx context.Context, s *session.Session, args []string, scope Scope, all bool) ([]api.Object, error) {
	targets, err := Parse(ctx, s, args)
	if err != nil {
		return nil, err
	}
	if scope.Looks {
		if targets, err = There(ctx, s, targets, scope); err != nil {
			return nil, err
		}
	}
	var out []api.Object
	count := s.Tally()
	for _, t := range targets {
		if t.Name != "" {
			obj, err := Resolve(ctx, s, t)
			count.Add(err)
			if err == nil {
				out = append(out, obj)
			}
			continue
		}
		if !all && scope.Labels == "" {
			return nil, exit.Usagef("which %s? Give a name, a selector (-l), or --all", t.Kind.Singular)
		}
		opts, err := scope.Options(s, t.Kind)
		if err != nil {
			return nil, err
		}
		list, err := s.API.List(ctx, t.Kind, opts)
		if err != nil {
			return nil, err
		}
		out = append(out, list.Items...)
	}
	return out, count.Err()
}

// SayNone prints that a list is empty. It goes to the error output, so that a script that counts lines gets zero.
func SayNone(s *session.Session, kind *api.Kind, opts client.ListOptions) {
	where := ""
	if kind.Namespaced {
		where = " in namespace " + opts.Namespace + " (-A shows all)"
		if opts.Namespace == "" {
			where = " in any namespace"
		}
	}
	s.Note("no %s found%s", kind.Plural, where)
}
