package ctl

import (
	"github.com/urfave/cli/v2"

	"minik8s/internal/api"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
	"minik8s/internal/ctl/target"
)

// scalable are the kinds whose spec.replicas is a number of pods.
var scalable = []*api.Kind{api.Deployments, api.ReplicaSets, api.ReplicationControllers}

func (p *program) scaleCommand() *cli.Command {
	return &cli.Command{
		Name: "scale", Usage: "set how many pods a deployment, a replica set or a replication controller has", ArgsUsage: "KIND NAME... --replicas N",
		Flags: append(selectFlags(),
			&cli.IntFlag{Name: "replicas", Aliases: []string{"r"}, Value: -1, Usage: "how many pods"},
			&cli.BoolFlag{Name: "all", Usage: "all objects of the kind in the namespace"},
		),
		Action: func(c *cli.Context) error {
			replicas := c.Int("replicas")
			if replicas < 0 {
				return exit.Usagef("scale KIND NAME --replicas N: how many pods?")
			}
			return p.eachOf(c, scalable, func(s *session.Session, obj api.Object) error {
				if err := s.Merge(c.Context, obj, map[string]any{"spec": map[string]any{"replicas": replicas}}); err != nil {
					return err
				}
				s.Say("%s scaled to %d", brief.RefOf(obj), replicas)
				return nil
			})
		},
	}
}

// eachOf does something to every object that the arguments name; they must be of the kinds given.
func (p *program) eachOf(c *cli.Context, kinds []*api.Kind, do func(s *session.Session, obj api.Object) error) error {
	s, err := p.session(c)
	if err != nil {
		return err
	}
	objects, err := target.Pick(c.Context, s, c.Args().Slice(), scopeOf(c), c.Bool("all"))
	if err != nil {
		return err
	}
	count := s.Tally()
	for _, obj := range objects {
		if err := oneOfKinds(c.Command.Name, obj, kinds); err != nil {
			count.Add(err)
			continue
		}
		count.Add(do(s, obj))
	}
	return count.Err()
}

func oneOfKinds(what string, obj api.Object, kinds []*api.Kind) error {
	var names string
	for i, k := range kinds {
		if api.KindOf(obj) == k {
			return nil
		}
		if i > 0 {
			names += " and "
		}
		names += k.Plural
	}
	return exit.Usagef("%s is for %s, not for %s", what, names, brief.RefOf(obj))
}
