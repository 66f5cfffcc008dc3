package ctl

import (
	"sort"
	"strings"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/util/validation"

	"minik8s/internal/api"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
	"minik8s/internal/ctl/target"
)

func (p *program) labelCommand() *cli.Command {
	return p.markCommand("label", "labels", api.Object.GetLabels, func(key, value string) []string {
		return append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...)
	})
}

func (p *program) annotateCommand() *cli.Command {
	return p.markCommand("annotate", "annotations", api.Object.GetAnnotations, func(key, _ string) []string {
		return validation.IsQualifiedName(key)
	})
}

// markCommand is label or annotate: both set keys of a map in the metadata.
func (p *program) markCommand(name, field string, get func(api.Object) map[string]string, check func(key, value string) []string) *cli.Command {
	return &cli.Command{
		Name: name, Usage: "set and remove " + field, ArgsUsage: "KIND NAME... KEY=VALUE... KEY-...",
		Flags: append(selectFlags(),
			&cli.BoolFlag{Name: "overwrite", Aliases: []string{"o"}, Usage: "change keys that are there already; without it they are kept"},
			&cli.BoolFlag{Name: "all", Usage: "all objects of the kind in the namespace"},
		),
		Action: func(c *cli.Context) error {
			args, set, drop, err := marks(c.Args().Slice(), check)
			if err != nil {
				return err
			}
			s, err := p.session(c)
			if err != nil {
				return err
			}
			objects, err := target.Pick(c.Context, s, args, scopeOf(c), c.Bool("all"))
			if err != nil {
				return err
			}
			count := s.Tally()
			for _, obj := range objects {
				count.Add(mark(c, s, obj, field, get(obj), set, drop))
			}
			return count.Err()
		},
	}
}

// marks takes KEY=VALUE and KEY- away from the arguments that name objects.
func marks(args []string, check func(key, value string) []string) (names []string, set map[string]string, drop []string, err error) {
	set = map[string]string{}
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		switch {
		case ok:
			if wrong := check(key, value); len(wrong) > 0 {
				return nil, nil, nil, exit.Usagef("%q: %s", arg, strings.Join(wrong, "; "))
			}
			if old, twice := set[key]; twice && old != value {
				return nil, nil, nil, exit.Usagef("%q is given twice, as %q and as %q", key, old, value)
			}
			set[key] = value
		case strings.HasSuffix(arg, "-") && len(arg) > 1:
			drop = append(drop, strings.TrimSuffix(arg, "-"))
		default:
			names = append(names, arg)
		}
	}
	for _, key := range drop {
		if _, both := set[key]; both {
			return nil, nil, nil, exit.Usagef("%q is both set and removed", key)
		}
	}
	if len(set)+len(drop) == 0 {
		return nil, nil, nil, exit.Usagef("what shall be set (KEY=VALUE) or removed (KEY-)?")
	}
	return names, set, drop, nil
}

// mark changes one object; keys that have another value are kept and told, unless --overwrite.
func mark(c *cli.Context, s *session.Session, obj api.Object, field string, now, set map[string]string, drop []string) error {
	change := map[string]any{}
	var kept []string
	for key, value := range set {
		old, there := now[key]
		switch {
		case there && old == value:
		case there && !c.Bool("overwrite"):
			kept = append(kept, key+"="+old)
		default:
			change[key] = value
		}
	}
	for _, key := range drop {
		if _, there := now[key]; there {
			change[key] = nil
		}
	}
	name := brief.RefOf(obj)
	if len(change) > 0 {
		if err := s.Merge(c.Context, obj, map[string]any{"metadata": map[string]any{field: change}}); err != nil {
			return err
		}
		s.Say("%s %s", name, map[string]string{"labels": "labeled", "annotations": "annotated"}[field])
	}
	if len(kept) > 0 {
		sort.Strings(kept)
		return exit.Failf(exit.Conflict, "%s has %s already, which was kept; --overwrite changes it", name, strings.Join(kept, ", "))
	}
	if len(change) == 0 {
		s.Say("%s not changed", name)
	}
	return nil
}
