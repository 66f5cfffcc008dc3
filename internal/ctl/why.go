package ctl

import (
	"context"
	"strings"

	"github.com/urfave/cli/v2"

	"minik8s/internal/api"
	"minik8s/internal/ctl/console"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
	"minik8s/internal/ctl/target"
	"minik8s/internal/ctl/why"
)

func (p *program) whyCommand() *cli.Command {
	return &cli.Command{
		Name: "why", Usage: "in one screen: why an object is not well, and the next command to type",
		ArgsUsage: "KIND NAME | KIND/NAME",
		Action: func(c *cli.Context) error {
			s, err := p.session(c)
			if err != nil {
				return err
			}
			targets, err := whyTargets(c.Context, s, c.Args().Slice())
			if err != nil {
				return err
			}
			for i, t := range targets {
				obj, err := target.Resolve(c.Context, s, t)
				if err != nil {
					return err
				}
				if i > 0 {
					s.Say("")
				}
				e, err := why.Explain(c.Context, s.API, t.Kind, obj, s.Now())
				if exit.CodeOf(err) == exit.Unreachable {
					return err
				}
				printExplanation(s.Console, e)
			}
			return nil
		},
	}
}

// whyTargets reads the arguments of why. Names are required. A single word that is not a kind is the name of a pod.
func whyTargets(ctx context.Context, s *session.Session, args []string) ([]target.Target, error) {
	if len(args) == 1 && !strings.Contains(args[0], "/") && api.ByWord(args[0]) == nil {
		return []target.Target{{Kind: api.Pods, Name: args[0]}}, nil
	}
	targets, err := target.Parse(ctx, s, args)
	if err != nil {
		return nil, err
	}
	for _, t := range targets {
		if t.Name == "" {
			return nil, exit.Usagef("why which %s? Give its name", t.Kind.Singular)
		}
	}
	return targets, nil
}

func printExplanation(c *console.Console, e why.Explanation) {
	colour := console.Red
	if e.Good {
		colour = console.Green
	}
	c.Say("%s", c.Paint(colour, e.Head))
	for _, f := range e.Facts {
		section(c, f.Head, f.Lines, "  ")
	}
	section(c, "Why", e.Why, "  ")
	section(c, e.LogHead, e.Log, "  | ")
	section(c, "Next", e.Next, "  ")
}

func section(c *console.Console, head string, lines []string, indent string) {
	if len(lines) == 0 {
		return
	}
	c.Say("\n%s", c.Paint(console.Bold, head))
	for _, l := range lines {
		c.Say("%s%s", indent, l)
	}
}
