package ctl

import (
	"github.com/urfave/cli/v2"

	"minik8s/internal/ctl/expose"
	"minik8s/internal/ctl/target"
)

func (p *program) exposeCommand() *cli.Command {
	return &cli.Command{
		Name: "expose", Usage: "make a service for a pod, a workload's pods, or those of another service", ArgsUsage: "KIND NAME...",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "name", Usage: "the service's name; without it, the object's"},
			&cli.StringFlag{Name: "port", Usage: "the service's ports, separated by commas; without it, those that the containers declare"},
			&cli.StringFlag{Name: "target-port", Usage: "the number or the name of the port in the pods; without it, the service's"},
			&cli.StringFlag{Name: "protocol", Usage: "TCP, UDP or SCTP"},
			&cli.StringFlag{Name: "type", Usage: "ClusterIP, NodePort or LoadBalancer"},
			&cli.StringFlag{Name: "cluster-ip", Usage: "the virtual address; None: only a name for the pods"},
			&cli.StringFlag{Name: "external-ip", Usage: "more addresses at which nodes lead to the service"},
			&cli.StringFlag{Name: "load-balancer-ip", Usage: "the address that a load balancer is asked for"},
			&cli.StringFlag{Name: "session-affinity", Usage: "None, or ClientIP: a client stays at one pod"},
			&cli.StringFlag{Name: "labels", Aliases: []string{"l"}, Usage: "the service's labels, KEY=VALUE,...; without it, the object's"},
			&cli.StringFlag{Name: "selector", Usage: "the labels of the pods, KEY=VALUE,...; without it, those of the object's pods"},
			&cli.BoolFlag{Name: "dry-run", Usage: "only check it"},
		},
		Action: func(c *cli.Context) error {
			s, err := p.session(c)
			if err != nil {
				return err
			}
			objects, err := target.Pick(c.Context, s, c.Args().Slice(), target.Scope{}, false)
			if err != nil {
				return err
			}
			count := s.Tally()
			for _, obj := range objects {
				if err := oneOfKinds(c.Command.Name, obj, expose.Kinds); err != nil {
					count.Add(err)
					continue
				}
				count.Add(expose.Expose(c.Context, s, obj, expose.Options{Name: c.String("name"), Ports: c.String("port"), TargetPort: c.String("target-port"),
					Protocol: c.String("protocol"), Type: c.String("type"), ClusterIP: c.String("cluster-ip"), ExternalIP: c.String("external-ip"),
					LoadBalancerIP: c.String("load-balancer-ip"), Affinity: c.String("session-affinity"), Labels: c.String("labels"),
					Selector: c.String("selector"), DryRun: c.Bool("dry-run")}))
			}
			return count.Err()
		},
	}
}
