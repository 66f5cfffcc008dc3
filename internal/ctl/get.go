package ctl

import (
	"strings"

	"github.com/urfave/cli/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/ctl/brief"
)

func (p *program) getCommand() *cli.Command {
	return &cli.Command{
		Name: "get", Usage: "show objects", ArgsUsage: "KIND[,KIND...] [NAME...] | KIND/NAME...",
		Flags: append(selectFlags(),
			&cli.StringFlag{Name: "field-selector", Usage: "only those with these `FIELDS`: status.phase=Running"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FORM`: yaml, json, wide, name, or x, a (the columns of the seed systems)"},
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Usage: "go on with every change"},
			&cli.BoolFlag{Name: "no-headers", Usage: "rows only"},
			&cli.BoolFlag{Name: "ignore-not-found", Usage: "an object that is not there is no error"},
		),
		Action: func(c *cli.Context) error {
			s, err := p.session(c)
			if err != nil {
				return err
			}
			return s.get(c)
		},
	}
}

func (s *session) get(c *cli.Context) error {
	targets, err := parseTargets(c.Args().Slice())
	if err != nil {
		return err
	}
	form := strings.ToLower(c.String("output"))
	switch form {
	case "", "wide", "x", "a", "yaml", "yml", "json", "name":
	default:
		return usagef("-o %s is not known: yaml, json, wide, name, x or a", form)
	}
	if c.Bool("watch") && len(targets) > 1 {
		return usagef("-w follows one kind, or one object, at a time")
	}
	if c.Bool("all-namespaces") && targets[0].name != "" {
		return usagef("a name is looked for in one namespace: leave -A out, or write NAMESPACE/NAME")
	}
	switch form {
	case "yaml", "yml", "json", "name":
		return s.getObjects(c, targets, form)
	}
	return s.getTables(c, targets, form)
}

// getTables shows what the server lays out.
func (s *session) getTables(c *cli.Context, targets []target, form string) error {
	seed := ""
	if form == "x" || form == "a" {
		seed = form
	}
	count := tally{p: s.program}
	several := len(kindsOf(targets)) > 1
	var g *grid
	for _, t := range targets {
		found, ok := s.tableOf(c, t, seed, &count)
		if !ok {
			continue
		}
		if g == nil || g.kind != t.kind {
			if g != nil && g.started {
				s.say("")
			}
			g = s.newGrid(c, t.kind, form, several)
		}
		if len(found.table.Rows) > 0 {
			g.print(found.table)
		} else {
			g.columns = found.table.ColumnDefinitions
		}
		if c.Bool("watch") {
			return s.follow(c.Context, t.kind, found.opts, found.table, seed, g)
		}
		if len(found.table.Rows) == 0 && !several {
			s.none(t.kind, found.opts)
		}
	}
	return count.err()
}

// found is a table, and how what is in it is watched.
type found struct {
	table *metav1.Table
	opts  client.ListOptions
}

// tableOf asks for the table of a target; false if there is none, which has been counted.
func (s *session) tableOf(c *cli.Context, t target, seed string, count *tally) (found, bool) {
	opts, err := s.listOptions(c, t.kind)
	if err != nil {
		count.add(err)
		return found{}, false
	}
	name, where := "", opts.Namespace
	if t.name != "" {
		obj, err := s.resolve(c.Context, t)
		if err != nil {
			if codeOf(err) != codeNotFound || !c.Bool("ignore-not-found") {
				count.add(err)
			}
			return found{}, false
		}
		name, where = obj.GetName(), obj.GetNamespace()
	}
	table, err := s.api.Table(c.Context, t.kind, where, name, opts, seed)
	if count.add(err); err != nil {
		return found{}, false
	}
	if name != "" {
		opts = client.ListOptions{Namespace: where, Fields: fields.OneTermEqualSelector("metadata.name", name)}
	}
	return found{table, opts}, true
}

// newGrid is where the rows of a kind are printed; several says that there are other kinds on the page.
func (s *session) newGrid(c *cli.Context, kind *api.Kind, form string, several bool) *grid {
	seed := form == "x" || form == "a"
	g := &grid{streams: &s.streams, kind: kind, layout: layout{
		wide: form == "wide" || seed, noHeaders: c.Bool("no-headers"),
		// X writes the namespace into the name itself.
		namespace: c.Bool("all-namespaces") && kind.Namespaced && form != "x",
	}}
	if several {
		g.layout.prefix = brief.Ref(kind, "")
	}
	return g
}

// none says that a list is empty; to err, so that a script that counts lines counts none.
func (s *session) none(kind *api.Kind, opts client.ListOptions) {
	where := ""
	if kind.Namespaced {
		where = " in namespace " + opts.Namespace + " (-A shows all)"
		if opts.Namespace == "" {
			where = " in any namespace"
		}
	}
	s.note("no %s found%s", kind.Plural, where)
}

func kindsOf(targets []target) map[*api.Kind]bool {
	kinds := map[*api.Kind]bool{}
	for _, t := range targets {
		kinds[t.kind] = true
	}
	return kinds
}
