package ctl

import (
	"time"

	"github.com/urfave/cli/v2"

	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/jointoken"
	"minik8s/internal/ctl/session"
)

// tokenTTL is how long a join token may be used if nothing else is said; kubeadm's.
const tokenTTL = 24 * time.Hour

func (p *program) tokenCommand() *cli.Command {
	return &cli.Command{
		Name: "token", Aliases: []string{"tokens"}, Usage: "let other machines join the cluster",
		Subcommands: []*cli.Command{
			{Name: "create", Usage: "make a join token, and print what to run on the other machine",
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "role", Value: "worker", Usage: "what the machine becomes: worker, or master, which gets the cluster's keys"},
					&cli.DurationFlag{Name: "ttl", Value: tokenTTL, Usage: "how long the token may be used; 0: until it is deleted"},
					&cli.StringFlag{Name: "description", Usage: "what it is for"},
					&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print only the token"},
				},
				Action: p.withSession(func(c *cli.Context, s *session.Session) error {
					ttl, role := c.Duration("ttl"), c.String("role")
					switch {
					case c.Args().Present():
						return exit.Usagef("token create takes only flags; see minik8sd ctl token create --help")
					case ttl < 0:
						return exit.Usagef("--ttl: %s is over already; expected a time to come, like 24h, or 0", ttl)
					}
					masters := role == "master" || role == "master,worker"
					if !masters && role != "worker" {
						return exit.Usagef("--role: %q is neither worker nor master", role)
					}
					return jointoken.Create(c.Context, s, jointoken.Options{TTL: ttl, Masters: masters, Description: c.String("description"), Quiet: c.Bool("quiet")})
				})},
			{Name: "list", Aliases: []string{"ls"}, Usage: "list the join tokens, without their secrets",
				Action: p.withSession(func(c *cli.Context, s *session.Session) error { return jointoken.List(c.Context, s) })},
			{Name: "delete", Aliases: []string{"rm"}, Usage: "end join tokens; machines that have joined stay", ArgsUsage: "ID...",
				Action: p.withSession(func(c *cli.Context, s *session.Session) error {
					if !c.Args().Present() {
						return exit.Usagef("token delete: which one? minik8sd ctl token list shows them")
					}
					return jointoken.Delete(c.Context, s, c.Args().Slice())
				})},
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return unknownCommand(c.Command.Subcommands, c.Args().First())
			}
			return exit.Usagef("token what? create, list, or delete ID")
		},
	}
}
