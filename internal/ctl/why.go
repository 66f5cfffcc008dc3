package ctl

import (
	"strings"

	"github.com/urfave/cli/v2"

	"minik8s/internal/api"
	"minik8s/internal/ctl/why"
)

func (p *program) whyCommand() *cli.Command {
	return &cli.Command{
		Name: "why", Usage: "in one screen: why an object is not well, and the next command to type",
		ArgsUsage: "KIND NAME | KIND/NAME",
		Action: func(c *cli.Context) error {
			targets, err := whyTargets(c.Args().Slice())
			if err != nil {
				return err
			}
			s, err := p.session(c)
			if err != nil {
				return err
			}
			for i, t := range targets {
				obj, err := s.resolve(c.Context, t)
				if err != nil {
					return err
				}
				if i > 0 {
					s.say("")
				}
				e, err := why.Explain(c.Context, s.api, t.kind, obj, s.now())
				if codeOf(err) == codeUnreachable {
					return err
				}
				s.printExplanation(e)
			}
			return nil
		},
	}
}

// whyTargets wants names; a lone word that is no kind is a pod's name.
func whyTargets(args []string) ([]target, error) {
	if len(args) == 1 && !strings.Contains(args[0], "/") && api.ByWord(args[0]) == nil {
		return []target{{api.Pods, args[0]}}, nil
	}
	targets, err := parseTargets(args)
	if err != nil {
		return nil, err
	}
	for _, t := range targets {
		if t.name == "" {
			return nil, usagef("why which %s? Give its name", t.kind.Singular)
		}
	}
	return targets, nil
}

func (s *session) printExplanation(e why.Explanation) {
	colour := red
	if e.Good {
		colour = green
	}
	s.say("%s", s.paint(colour, e.Head))
	s.section("Why", e.Why, "  ")
	s.section(e.LogHead, e.Log, "  | ")
	s.section("Next", e.Next, "  ")
}

func (s *session) section(head string, lines []string, indent string) {
	if len(lines) == 0 {
		return
	}
	s.say("\n%s", s.paint(bold, head))
	for _, l := range lines {
		s.say("%s%s", indent, l)
	}
}
