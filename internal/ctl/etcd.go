package ctl

import (
	"context"

	"github.com/urfave/cli/v2"

	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
	"minik8s/internal/ctl/storage"
)

// Offline is what is done to the data directory of a stopped daemon. It is not done by the API, so main has it.
type Offline struct {
	// Restore puts a snapshot in the place of the store; force: also where there is one.
	Restore func(ctx context.Context, dataDir, file string, force bool) (Restored, error)
	// Recover makes this machine's copy of the store the whole cluster.
	Recover func(ctx context.Context, dataDir string) (Restored, error)
}

// Restored is what was restored.
type Restored struct {
	Revision int64
	// Aside is the directory with what was there before; empty if nothing was.
	Aside string
}

func (p *program) etcdCommand() *cli.Command {
	return &cli.Command{
		Name: "etcd", Usage: "show and change which masters keep the cluster's store, save it and restore it",
		Subcommands: []*cli.Command{p.etcdMembers(), p.etcdRemove(), p.etcdSnapshot(), p.etcdRestore(), p.etcdRecover()},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return unknownCommand(c.Command.Subcommands, c.Args().First())
			}
			return exit.Usagef("etcd what? members, remove NAME, snapshot FILE, restore FILE, or recover")
		},
	}
}

// withSession is an action that talks to the cluster.
func (p *program) withSession(do func(c *cli.Context, s *session.Session) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		s, err := p.session(c)
		if err != nil {
			return err
		}
		return do(c, s)
	}
}

func (p *program) etcdMembers() *cli.Command {
	return &cli.Command{
		Name: "members", Usage: "list the members of the store: the masters",
		Description: "Roles: voter (a majority of them agrees on each write), leader (one of them), learner (it has all data and serves the\n" +
			"API, and becomes a voter when the voters need one). States: up, lost (the leader does not hear from it), joining, or\n" +
			"unknown when the leader cannot be asked.",
		Flags: []cli.Flag{&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "wide: with IDs and the addresses of the APIs"}},
		Action: func(c *cli.Context) error {
			wide := c.String("output") == "wide"
			if c.Args().Present() || c.String("output") != "" && !wide {
				return exit.Usagef("etcd members takes only -o wide")
			}
			return p.withSession(func(c *cli.Context, s *session.Session) error { return storage.Members(c.Context, s, wide) })(c)
		},
	}
}

func (p *program) etcdRemove() *cli.Command {
	return &cli.Command{
		Name: "remove", Aliases: []string{"rm"}, Usage: "remove a member from the store, by its name or ID", ArgsUsage: "NAME",
		Description: "For a master that is gone for good. It is refused if those who stay would be no majority of the voters. A master\n" +
			"that was removed joins as a new member when it is started again; run \"minik8sd clean\" there if it must not.",
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return exit.Usagef("etcd remove: which member? One name; minik8sd ctl etcd members lists them")
			}
			return p.withSession(func(c *cli.Context, s *session.Session) error { return storage.Remove(c.Context, s, c.Args().First()) })(c)
		},
	}
}

func (p *program) etcdSnapshot() *cli.Command {
	return &cli.Command{
		Name: "snapshot", Usage: "save a copy of the whole store in a file", ArgsUsage: "FILE",
		Description: "The file is in etcd's own form. It contains all Secrets of the cluster as they are: keep it as safe as the machine\n" +
			"itself. It does not contain the cluster's keys, which are in the directory pki of each master's data directory. With\n" +
			"--etcd-servers it is a copy of that whole etcd, also of what others keep there.",
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return exit.Usagef("etcd snapshot: into which file?")
			}
			return p.withSession(func(c *cli.Context, s *session.Session) error { return storage.Save(c.Context, s, c.Args().First()) })(c)
		},
	}
}

func (p *program) etcdRestore() *cli.Command {
	return &cli.Command{
		Name: "restore", Usage: "put a snapshot in the place of this machine's store; minik8sd must be stopped", ArgsUsage: "FILE",
		Description: "All other masters must be stopped, too. This machine is the whole cluster then; start it first, as always. Others\n" +
			"that are started after it find out that they are of an older cluster, and join it by themselves. On a new machine put\n" +
			"the directory pki of one of the lost masters into the data directory after this: nodes and tokens are known by its keys.",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "force", Usage: "also where there is a store; it is kept beside"}},
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return exit.Usagef("etcd restore: which snapshot? minik8sd ctl etcd snapshot FILE makes one")
			}
			r, err := p.offline.Restore(c.Context, p.dataDir(c), c.Args().First(), c.Bool("force"))
			return p.restored("restored", r, err)
		},
	}
}

func (p *program) etcdRecover() *cli.Command {
	return &cli.Command{
		Name: "recover", Usage: "go on with this master alone when a majority of the voters is lost for good; minik8sd must be stopped",
		Description: "This machine's copy of the store becomes the whole cluster, whether it voted or not. What was acknowledged in the last\n" +
			"moments before the others were lost, and had not reached this machine, is lost: with several masters left, take\n" +
			"one that voted. All others must be stopped. Others that are started after it find out that they are of an older\n" +
			"cluster, and join it by themselves.",
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return exit.Usagef("etcd recover takes no arguments")
			}
			r, err := p.offline.Recover(c.Context, p.dataDir(c))
			return p.restored("recovered", r, err)
		},
	}
}

// restored says what was done, and what to do next.
func (p *program) restored(done string, r Restored, err error) error {
	if err != nil {
		return err
	}
	p.Say("%s: the store as of revision %d, with this machine as its only member", done, r.Revision)
	if r.Aside != "" {
		p.Say("what was there before is kept in %s: remove it when all is well", r.Aside)
	}
	p.Say("Now start minik8sd here as before, and then the other masters: they join this one by themselves.")
	return nil
}

// dataDir is that of the daemon on this machine.
func (p *program) dataDir(c *cli.Context) string {
	for _, dir := range []string{c.String("data-dir"), p.getenv(session.DataDirVariable)} {
		if dir != "" {
			return dir
		}
	}
	return session.DefaultDataDir
}
