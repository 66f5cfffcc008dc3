package get

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/printer"
	"minik8s/internal/ctl/session"
	"minik8s/internal/ctl/target"
)

// Request is what a person wants to see.
type Request struct {
	Targets []target.Target
	Scope   target.Scope
	// Form is the output format: "" and wide are tables, x and a are those of the seed systems; yaml, yml, json and
	// name print objects.
	Form string
	// Watch continues with every change.
	Watch          bool
	NoHeaders      bool
	IgnoreNotFound bool
}

// Show prints what a request asks for.
func Show(ctx context.Context, s *session.Session, r Request) error {
	r.Form = strings.ToLower(r.Form)
	switch r.Form {
	case "", "wide", "x", "a", "yaml", "yml", "json", "name":
	default:
		return exit.Usagef("-o %s is not known: yaml, json, wide, name, x or a", r.Form)
	}
	var err error
	if r.Targets, err = target.There(ctx, s, r.Targets, r.Scope); err != nil {
		return err
	}
	if r.Watch && len(r.Targets) > 1 {
		return exit.Usagef("-w follows one kind, or one object, at a time")
	}
	if r.Scope.AllNamespaces && r.Targets[0].Name != "" {
		return exit.Usagef("a name is looked for in one namespace: leave -A out, or write NAMESPACE/NAME")
	}
	switch r.Form {
	case "yaml", "yml", "json", "name":
		if r.Watch {
			return followObjects(ctx, s, r)
		}
		return showObjects(ctx, s, r)
	}
	return showTables(ctx, s, r)
}

// seed returns the seed system whose columns are requested; "" for none.
func (r *Request) seed() string {
	if r.Form == "x" || r.Form == "a" {
		return r.Form
	}
	return ""
}

// missing reports whether an error only says that an object does not exist, and the request ignores that.
func (r *Request) missing(err error) bool {
	return r.IgnoreNotFound && exit.CodeOf(err) == exit.NotFound
}

// showTables shows tables from the server.
func showTables(ctx context.Context, s *session.Session, r Request) error {
	count := s.Tally()
	several := len(kindsOf(r.Targets)) > 1
	var kind *api.Kind
	var g *printer.Grid
	for _, t := range r.Targets {
		found, err := tableOf(ctx, s, r, t)
		if r.missing(err) {
			continue
		}
		if count.Add(err); err != nil {
			continue
		}
		if kind != t.Kind {
			if g != nil && g.Started() {
				s.Say("")
			}
			kind, g = t.Kind, r.grid(s, t.Kind, several)
		}
		if r.seed() == "x" && !r.Watch {
			fillUsage(ctx, s, t.Kind, found.in.Namespace, found.table)
		}
		g.Print(found.table)
		if r.Watch {
			return followTable(ctx, s, t.Kind, found, r.seed(), g)
		}
		if len(found.table.Rows) == 0 && !several {
			target.SayNone(s, t.Kind, found.in)
		}
	}
	return count.Err()
}

// found is a table, with the list options for watching its objects.
type found struct {
	table *metav1.Table
	in    client.ListOptions
}

// tableOf requests the table of a target.
func tableOf(ctx context.Context, s *session.Session, r Request, t target.Target) (found, error) {
	opts, err := r.Scope.Options(s, t.Kind)
	if err != nil {
		return found{}, err
	}
	name, namespace := "", opts.Namespace
	if t.Name != "" {
		obj, err := target.Resolve(ctx, s, t)
		if err != nil {
			return found{}, err
		}
		name, namespace = obj.GetName(), obj.GetNamespace()
	}
	table, err := s.API.Table(ctx, t.Kind, namespace, name, opts, r.seed())
	if err != nil {
		return found{}, err
	}
	if name != "" {
		opts = client.ListOptions{Namespace: namespace, Fields: fields.OneTermEqualSelector("metadata.name", name)}
	}
	return found{table, opts}, nil
}

// grid returns the grid for the rows of a kind. several says that other kinds are printed too.
func (r *Request) grid(s *session.Session, kind *api.Kind, several bool) *printer.Grid {
	layout := printer.Layout{
		// Who watches an autoscaler wants to see how many pods it wants, too.
		Wide: r.Form == "wide" || r.seed() != "" || r.Watch && r.Form == "" && kind == api.HorizontalPodAutoscalers, NoHeaders: r.NoHeaders,
		// The layout x has the namespace in the name.
		Namespace: r.Scope.AllNamespaces && kind.Namespaced && r.Form != "x",
	}
	if several {
		layout.Prefix = brief.Ref(kind, "")
	}
	return printer.NewGrid(s.Console, layout)
}

func kindsOf(targets []target.Target) map[*api.Kind]bool {
	kinds := map[*api.Kind]bool{}
	for _, t := range targets {
		kinds[t.Kind] = true
	}
	return kinds
}
