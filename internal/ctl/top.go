package ctl

import (
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/top"
)

func (p *program) topCommand() *cli.Command {
	return &cli.Command{
		Name: "top", Usage: "what nodes, pods and containers use, live", ArgsUsage: "[nodes | pods | containers] [NAME...]",
		Flags: append(selectFlags(),
			&cli.StringFlag{Name: "sort", Aliases: []string{"sort-by"}, Value: top.ByCPU, Usage: "the `ORDER`: " + strings.Join(top.Orders, ", ")},
			&cli.BoolFlag{Name: "containers", Usage: "each container of pods"},
			&cli.BoolFlag{Name: "once", Usage: "print a table and end; also where the output is no terminal"},
			&cli.DurationFlag{Name: "interval", Value: 2 * time.Second, Usage: "`TIME` between two questions, 1s or more"},
			&cli.BoolFlag{Name: "no-headers", Usage: "rows only"},
		),
		Action: func(c *cli.Context) error {
			r := top.Request{View: top.Pods, AllNamespaces: c.Bool("all-namespaces"), Labels: c.String("selector"), Sort: c.String("sort"),
				Once: c.Bool("once"), NoHeaders: c.Bool("no-headers"), Interval: c.Duration("interval")}
			if !slices.Contains(top.Orders, r.Sort) {
				return exit.Usagef("--sort %q is none of %s", r.Sort, strings.Join(top.Orders, ", "))
			}
			if r.Interval < time.Second {
				return exit.Usagef("--interval %v is less than 1s, and no rate is known of less", r.Interval)
			}
			args := c.Args().Slice()
			if len(args) > 0 {
				switch strings.ToLower(args[0]) {
				case "node", "nodes", "no":
					r.View = top.Nodes
				case "pod", "pods", "po":
				case "container", "containers":
					r.View = top.Containers
				default:
					return exit.Usagef("top shows nodes, pods or containers, not %q", args[0])
				}
				r.Names = args[1:]
			}
			if c.Bool("containers") && r.View == top.Pods {
				r.View = top.Containers
			}
			s, err := p.session(c)
			if err != nil {
				return err
			}
			return top.Run(c.Context, s, r)
		},
	}
}
