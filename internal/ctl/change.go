package ctl

import (
	"strings"

	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/change"
	"minik8s/internal/ctl/drain"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
	"minik8s/internal/ctl/target"
)

func (p *program) labelCommand() *cli.Command { return p.mapFieldCommand("label", &change.Labels) }

func (p *program) annotateCommand() *cli.Command {
	return p.mapFieldCommand("annotate", &change.Annotations)
}

// mapFieldCommand is label or annotate: both set keys of a map in the metadata.
func (p *program) mapFieldCommand(name string, m *change.MapField) *cli.Command {
	return &cli.Command{
		Name: name, Usage: "set and remove " + m.Field, ArgsUsage: "KIND NAME... KEY=VALUE... KEY-...",
		Flags: append(selectFlags(),
			&cli.BoolFlag{Name: "overwrite", Aliases: []string{"o"}, Usage: "change keys that are there already; without it they are kept"},
			allFlag(),
		),
		Action: func(c *cli.Context) error {
			names, edit, err := m.Parse(c.Args().Slice())
			if err != nil {
				return err
			}
			s, err := p.session(c)
			if err != nil {
				return err
			}
			objects, err := target.Pick(c.Context, s, names, scopeOf(c), c.Bool("all"))
			if err != nil {
				return err
			}
			count := s.Tally()
			for _, obj := range objects {
				count.Add(m.Apply(c.Context, s, obj, edit, c.Bool("overwrite")))
			}
			return count.Err()
		},
	}
}

func (p *program) cordonCommand() *cli.Command {
	return p.schedulable("cordon", "give a node no new pods; those that it has stay", true)
}

func (p *program) uncordonCommand() *cli.Command {
	return p.schedulable("uncordon", "give a node pods again", false)
}

func (p *program) schedulable(name, usage string, closed bool) *cli.Command {
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
				count.Add(cordon(c, s, arg, closed))
			}
			return count.Err()
		},
	}
}

func cordon(c *cli.Context, s *session.Session, name string, closed bool) error {
	node, err := nodeNamed(c, s, name)
	if err != nil {
		return err
	}
	return change.Cordon(c.Context, s, node, closed)
}

func nodeNamed(c *cli.Context, s *session.Session, name string) (*corev1.Node, error) {
	targets, err := target.Parse(c.Context, s, []string{api.Nodes.Plural, name})
	if err != nil {
		return nil, err
	}
	obj, err := target.Resolve(c.Context, s, targets[0])
	if err != nil {
		return nil, err
	}
	node, ok := obj.(*corev1.Node)
	if !ok {
		return nil, exit.Failf(exit.Failed, "the server's answer is no node")
	}
	return node, nil
}

func (p *program) drainCommand() *cli.Command {
	return &cli.Command{
		Name: "drain", Usage: "empty a node, so that it can be stopped: no new pods, and those that it has are evicted", ArgsUsage: "NODE...",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "force", Usage: "evict pods that nobody makes again, too"},
			&cli.BoolFlag{Name: "ignore-daemonsets", Usage: "leave the pods of daemon sets there"},
			&cli.BoolFlag{Name: "delete-emptydir-data", Usage: "evict pods whose emptyDir volumes are lost with them, too"},
			&cli.Int64Flag{Name: "grace-period", Value: -1, Usage: "how many seconds pods may take to end; negative: as each pod says"},
			&cli.DurationFlag{Name: "timeout", Usage: "how long to wait for all of it; 0: for as long as it takes"},
			&cli.BoolFlag{Name: "dry-run", Usage: "only say which pods would be evicted"},
		},
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return exit.Usagef("drain NODE: which node?")
			}
			s, err := p.session(c)
			if err != nil {
				return err
			}
			o := drain.Options{Force: c.Bool("force"), IgnoreDaemonSets: c.Bool("ignore-daemonsets"), DeleteEmptyDirData: c.Bool("delete-emptydir-data"),
				Grace: c.Int64("grace-period"), Timeout: c.Duration("timeout"), DryRun: c.Bool("dry-run")}
			count := s.Tally()
			for _, arg := range c.Args().Slice() {
				node, err := nodeNamed(c, s, arg)
				if err == nil {
					err = drain.Node(c.Context, s, node, o)
				}
				count.Add(err)
			}
			return count.Err()
		},
	}
}

func (p *program) scaleCommand() *cli.Command {
	return &cli.Command{
		Name: "scale", Usage: "set how many pods a deployment, a replica set or a replication controller has", ArgsUsage: "KIND NAME... --replicas N",
		Flags: append(selectFlags(),
			&cli.IntFlag{Name: "replicas", Aliases: []string{"r"}, Value: -1, Usage: "how many pods"},
			allFlag(),
		),
		Action: func(c *cli.Context) error {
			replicas := c.Int("replicas")
			if replicas < 0 {
				return exit.Usagef("scale KIND NAME --replicas N: how many pods?")
			}
			return p.eachOf(c, change.Scalable, func(s *session.Session, obj api.Object) error {
				return change.Replicas(c.Context, s, obj, replicas)
			})
		},
	}
}

// eachOf calls do for every object that the arguments name. The objects must be of the given kinds.
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

// cfgCommand shows and changes the settings of the cluster that can change while it runs. They are in the ClusterConfig
// named "cluster".
func (p *program) cfgCommand() *cli.Command {
	return &cli.Command{
		Name: "cfg", Usage: "show the cluster's settings, or change one: sched=STRATEGY", ArgsUsage: "[sched=STRATEGY]",
		Description: "sched is how a node is chosen among those that fit a pod: " + strings.Join(minik8s.Strategies, ", ") + ".",
		Action: func(c *cli.Context) error {
			spec, err := change.ParseSettings(c.Args().Slice())
			if err != nil {
				return err
			}
			s, err := p.session(c)
			if err != nil {
				return err
			}
			if spec == nil {
				return change.ShowSettings(c.Context, s)
			}
			return change.SetSettings(c.Context, s, *spec)
		},
	}
}
