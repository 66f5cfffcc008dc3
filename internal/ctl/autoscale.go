package ctl

import (
	"strconv"

	"github.com/urfave/cli/v2"

	"minik8s/internal/ctl/autoscale"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/target"
)

func (p *program) autoscaleCommand() *cli.Command {
	return &cli.Command{
		Name: "autoscale", Usage: "have the number of a workload's pods follow their load", ArgsUsage: "NAME --target WORKLOAD | KIND NAME",
		Description: "autoscale hpa --target=rs --min=1 --max=4 -c 25 -i 10 makes the autoscaler hpa for the replica set rs: percentages of a core and\n" +
			"of the memory that a pod may use, and at most one pod more or less in ten seconds.\n" +
			"autoscale deployment web --min=1 --max=4 --cpu=80% makes the autoscaler web, as kubectl does: percentages of what the pods request.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "target", Aliases: []string{"t"}, Usage: "the replica set (or deployment) to scale: `NAME` or NAMESPACE/NAME"},
			&cli.IntFlag{Name: "min", Usage: "the fewest pods; without it 1"},
			&cli.IntFlag{Name: "max", Usage: "the most pods; with --target and without this 1"},
			&cli.StringFlag{Name: "cpu", Aliases: []string{"c"}, Usage: "how much cpu the pods are to use: a percentage, or without --target also an amount (500m)"},
			&cli.StringFlag{Name: "memory", Aliases: []string{"mem", "m"}, Usage: "how much memory: a percentage, or without --target also an amount (200Mi)"},
			&cli.IntFlag{Name: "cpu-percent", Usage: "how much cpu, in percent of what the pods request"},
			&cli.IntFlag{Name: "interval", Aliases: []string{"i"}, Value: 15, Usage: "with --target: at most one pod more or less in so many seconds"},
			&cli.StringFlag{Name: "name", Usage: "the autoscaler's name; without it, the workload's"},
			&cli.BoolFlag{Name: "dry-run", Usage: "only check it"},
		},
		Action: func(c *cli.Context) error {
			s, err := p.session(c)
			if err != nil {
				return err
			}
			o := autoscale.Options{Name: c.String("name"), Target: c.String("target"), Min: c.Int("min"), Max: c.Int("max"), CPU: c.String("cpu"),
				Memory: c.String("memory"), Interval: c.Int("interval"), DryRun: c.Bool("dry-run")}
			if c.IsSet("min") && o.Min < 0 {
				return exit.Usagef("--min: it is %d, and a number of pods is not negative", o.Min)
			}
			if c.IsSet("target") {
				return seedAutoscale(c, p, o)
			}
			if c.IsSet("cpu-percent") {
				if o.CPU != "" {
					return exit.Usagef("--cpu and --cpu-percent are two ways to say the same: give one")
				}
				o.CPU = strconv.Itoa(c.Int("cpu-percent")) + "%"
			}
			if !c.Args().Present() {
				return exit.Usagef("autoscale NAME --target WORKLOAD, or autoscale KIND NAME: which?")
			}
			objects, err := target.Pick(c.Context, s, c.Args().Slice(), target.Scope{}, false)
			if err != nil {
				return err
			}
			count := s.Tally()
			for _, obj := range objects {
				if err := oneOfKinds(c.Command.Name, obj, autoscale.Kinds); err != nil {
					count.Add(err)
					continue
				}
				count.Add(autoscale.Kubectl(c.Context, s, obj, o))
			}
			return count.Err()
		},
	}
}

// seedAutoscale is the form of the first seed system: its one argument is the autoscaler's name.
func seedAutoscale(c *cli.Context, p *program, o autoscale.Options) error {
	if c.Args().Len() != 1 {
		return exit.Usagef("autoscale NAME --target WORKLOAD: give one name for the autoscaler")
	}
	o.Name = c.Args().First()
	if !c.IsSet("min") {
		o.Min = 1
	}
	if !c.IsSet("max") {
		o.Max = 1
	}
	s, err := p.session(c)
	if err != nil {
		return err
	}
	return autoscale.Seed(c.Context, s, o)
}
