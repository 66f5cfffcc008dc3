package ctl

import (
	"github.com/urfave/cli/v2"

	"minik8s/internal/ctl/describe"
	"minik8s/internal/ctl/get"
	"minik8s/internal/ctl/target"
)

// selectFlags are the flags that select several objects.
func selectFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "selector", Aliases: []string{"l"}, Usage: "only those with these labels: `K=V,K2!=V2,K3`"},
		&cli.BoolFlag{Name: "all-namespaces", Aliases: []string{"A"}, Usage: "in all namespaces"},
	}
}

// allFlag selects all objects when no name is given.
func allFlag() cli.Flag {
	return &cli.BoolFlag{Name: "all", Usage: "all objects of the kind in the namespace"}
}

// scopeOf returns the scope from selectFlags and from get's --field-selector.
func scopeOf(c *cli.Context) target.Scope {
	return target.Scope{AllNamespaces: c.Bool("all-namespaces"), Labels: c.String("selector"), Fields: c.String("field-selector")}
}

func (p *program) getCommand() *cli.Command {
	return &cli.Command{
		Name: "get", Usage: "show objects", ArgsUsage: "KIND[,KIND...] [NAME...] | KIND/NAME...",
		Flags:  getFlags(),
		Action: func(c *cli.Context) error { return p.get(c, c.Args().Slice()) },
	}
}

func getFlags() []cli.Flag {
	return append(selectFlags(),
		&cli.StringFlag{Name: "field-selector", Usage: "only those with these `FIELDS`: status.phase=Running"},
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FORM`: yaml, json, wide, name, or x, a (the columns of the seed systems)"},
		&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Usage: "go on with every change"},
		&cli.BoolFlag{Name: "no-headers", Usage: "rows only"},
		&cli.BoolFlag{Name: "ignore-not-found", Usage: "an object that is not there is no error"},
	)
}

// get shows what the arguments name.
func (p *program) get(c *cli.Context, args []string) error {
	s, err := p.session(c)
	if err != nil {
		return err
	}
	targets, err := target.Parse(c.Context, s, args)
	if err != nil {
		return err
	}
	return get.Show(c.Context, s, get.Request{Targets: targets, Scope: scopeOf(c), Form: c.String("output"), Watch: c.Bool("watch"),
		NoHeaders: c.Bool("no-headers"), IgnoreNotFound: c.Bool("ignore-not-found")})
}

func (p *program) describeCommand() *cli.Command {
	return &cli.Command{
		Name: "describe", Aliases: []string{"desc"}, Usage: "tell all about objects, with their events",
		ArgsUsage: "KIND [NAME...] | KIND/NAME...", Flags: selectFlags(),
		Action: func(c *cli.Context) error {
			s, err := p.session(c)
			if err != nil {
				return err
			}
			scope := scopeOf(c)
			scope.Looks = true
			objects, err := target.Pick(c.Context, s, c.Args().Slice(), scope, true)
			for i, obj := range objects {
				if i > 0 {
					s.Say("\n")
				}
				if err := describe.Show(c.Context, s, obj); err != nil {
					return err
				}
			}
			return err
		},
	}
}
