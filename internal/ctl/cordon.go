package ctl

import (
	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
	"minik8s/internal/ctl/target"
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
				return exit.Usagef("%s NODE: which node?", name)
			}
			s, err := p.session(c)
			if err != nil {
				return err
			}
			count := s.Tally()
			for _, arg := range c.Args().Slice() {
				count.Add(setSchedulable(c, s, arg, closed, done))
			}
			return count.Err()
		},
	}
}

func setSchedulable(c *cli.Context, s *session.Session, name string, closed bool, done string) error {
	targets, err := target.Parse([]string{api.Nodes.Plural, name})
	if err != nil {
		return err
	}
	obj, err := target.Resolve(c.Context, s, targets[0])
	if err != nil {
		return err
	}
	if node, ok := obj.(*corev1.Node); ok && node.Spec.Unschedulable == closed {
		s.Say("%s already %s", brief.RefOf(obj), done)
		return nil
	}
	if err := s.Merge(c.Context, obj, map[string]any{"spec": map[string]any{"unschedulable": closed}}); err != nil {
		return err
	}
	s.Say("%s %s", brief.RefOf(obj), done)
	return nil
}
