package ctl

import (
	"strings"

	"github.com/urfave/cli/v2"
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
	var last *api.Kind
	for _, t := range targets {
		opts, err := s.listOptions(c, t.kind)
		if err != nil {
			return err
		}
		name, where := "", opts.Namespace
		if t.name != "" {
			obj, err := s.resolve(c.Context, t)
			if codeOf(err) == codeNotFound && c.Bool("ignore-not-found") {
				continue
			}
			if err != nil {
				count.add(err)
				continue
			}
			name, where = obj.GetName(), obj.GetNamespace()
		}
		table, err := s.api.Table(c.Context, t.kind, where, name, opts, seed)
		if count.add(err); err != nil {
			continue
		}
		if t.kind != last {
			if g != nil && g.started {
				s.say("")
			}
			g = &grid{streams: &s.streams, layout: layout{
				wide: form == "wide" || seed != "", noHeaders: c.Bool("no-headers"),
				// X writes the namespace into the name itself.
				namespace: c.Bool("all-namespaces") && t.kind.Namespaced && seed != "x",
			}}
			if several {
				g.layout.prefix = brief.Ref(t.kind, "")
			}
			last = t.kind
		}
		if len(table.Rows) > 0 {
			g.print(table)
		} else {
			g.columns = table.ColumnDefinitions
		}
		if c.Bool("watch") {
			if name != "" {
				opts = client.ListOptions{Namespace: where, Fields: fields.OneTermEqualSelector("metadata.name", name)}
			}
			return s.follow(c.Context, t.kind, opts, table, seed, g)
		}
		if len(table.Rows) == 0 && !several {
			s.none(t.kind, opts)
		}
	}
	return count.err()
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
