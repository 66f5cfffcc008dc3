package ctl

import (
	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
)

func (p *program) cordonCommand() *cli.Command {
	return p.schedulable("cordon", "give a node no new pods; those that it has stay", true, "cordoned")
}

func (p *program) uncordonCommand() *cli.Command {
	return p.schedulable("uncordon", "give a node pods again", false, "uncordoned")
}

func (p *program) schedulable(name, usage string, closed bool, done string) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usage, ArgsUsage: "NODE...",
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return usagef("%s NODE: which node?", name)
			}
			s, err := p.session(c)
			if err != nil {
				return err
			}
			count := tally{p: p}
			for _, arg := range c.Args().Slice() {
				count.add(s.setSchedulable(c, arg, closed, done))
			}
			return count.err()
		},
	}
}

func (s *session) setSchedulable(c *cli.Context, name string, closed bool, done string) error {
	targets, err := parseTargets([]string{api.Nodes.Plural, name})
	if err != nil {
		return err
	}
	obj, err := s.resolve(c.Context, targets[0])
	if err != nil {
		return err
	}
	if node, ok := obj.(*corev1.Node); ok && node.Spec.Unschedulable == closed {
		s.say("%s already %s", refOf(obj), done)
		return nil
	}
	if err := s.patchMeta(c, obj, map[string]any{"spec": map[string]any{"unschedulable": closed}}); err != nil {
		return err
	}
	s.say("%s %s", refOf(obj), done)
	return nil
}
