package ctl

import (
	"github.com/urfave/cli/v2"

	"minik8s/internal/api"
	"minik8s/internal/ctl/rollout"
	"minik8s/internal/ctl/session"
)

func (p *program) rolloutCommand() *cli.Command {
	sub := func(name, usage string, kinds []*api.Kind, do func(*cli.Context, *session.Session, api.Object) error, flags ...cli.Flag) *cli.Command {
		return &cli.Command{Name: name, Usage: usage, ArgsUsage: "KIND NAME...",
			Flags: append(append(selectFlags(), allFlag()), flags...),
			Action: func(c *cli.Context) error {
				return p.eachOf(c, kinds, func(s *session.Session, obj api.Object) error { return do(c, s, obj) })
			}}
	}
	only := []*api.Kind{api.Deployments}
	return &cli.Command{
		Name: "rollout", Usage: "watch, undo, hold back or repeat the replacing of a workload's pods",
		Subcommands: []*cli.Command{
			sub("status", "wait until the new pods have taken over", rollout.Kinds,
				func(c *cli.Context, s *session.Session, obj api.Object) error {
					return rollout.Status(c.Context, s, obj, c.Duration("timeout"), c.Bool("no-wait"))
				},
				&cli.DurationFlag{Name: "timeout", Usage: "how long to wait at most; 0: as long as it takes"},
				&cli.BoolFlag{Name: "no-wait", Usage: "only say how it stands; the exit code is 1 while it goes on"}),
			sub("history", "list the templates that there were", rollout.Kinds,
				func(c *cli.Context, s *session.Session, obj api.Object) error {
					return rollout.History(c.Context, s, obj, c.Int64("revision"))
				},
				&cli.Int64Flag{Name: "revision", Usage: "show the template of `REVISION`"}),
			sub("undo", "go back to an earlier template", rollout.Kinds,
				func(c *cli.Context, s *session.Session, obj api.Object) error {
					return rollout.Undo(c.Context, s, obj, c.Int64("to-revision"))
				},
				&cli.Int64Flag{Name: "to-revision", Usage: "to which `REVISION`; 0: the one before"}),
			sub("restart", "replace all pods by new ones of the same template", rollout.Kinds,
				func(c *cli.Context, s *session.Session, obj api.Object) error {
					return rollout.Restart(c.Context, s, obj)
				}),
			sub("pause", "let changes of the template wait", only,
				func(c *cli.Context, s *session.Session, obj api.Object) error {
					return rollout.Pause(c.Context, s, obj)
				}),
			sub("resume", "carry out the changes that wait", only,
				func(c *cli.Context, s *session.Session, obj api.Object) error {
					return rollout.Resume(c.Context, s, obj)
				}),
		},
	}
}
