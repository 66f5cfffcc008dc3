package ctl

import (
	"context"
	"strings"

	"github.com/urfave/cli/v2"

	"minik8s/internal/api"
	"minik8s/internal/ctl/commandline"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/suggest"
)

// Command is `minik8sd ctl`. Its errors are cli.ExitCoders with text that is ready to print.
func Command(version string, offline Offline) *cli.Command {
	return &cli.Command{
		Name:      "ctl",
		Usage:     "talk to a cluster: apply, get, describe, why, logs and more (ctl --help)",
		ArgsUsage: "COMMAND [flags] [arguments]",
		// The commands below parse their own arguments, because people also write flags after names.
		SkipFlagParsing: true,
		HideHelp:        true,
		Action: func(c *cli.Context) error {
			p := newProgram(c.App.Reader, c.App.Writer, c.App.ErrWriter)
			p.version, p.offline = version, offline
			return p.run(c.Context, c.Args().Slice())
		},
	}
}

// run executes one command line, given without the words "minik8sd ctl".
func (p *program) run(ctx context.Context, args []string) error {
	if ctx == nil {
		ctx = context.Background()
	}
	app := p.app()
	ordered := commandline.Reorder(app.Flags, app.Commands, args)
	return p.exit(app.RunContext(ctx, append([]string{app.Name}, ordered...)))
}

func (p *program) app() *cli.App {
	app := &cli.App{
		Name: "ctl", HelpName: "minik8sd ctl", HideVersion: true,
		Usage:       "talk to a minik8s cluster",
		UsageText:   "minik8sd ctl COMMAND [flags] [arguments]",
		Description: description(),
		Reader:      p.In, Writer: p.Out, ErrWriter: p.Err,
		// The name of a file may contain a comma.
		DisableSliceFlagSeparator: true,
		// Errors are returned to main, which exits.
		ExitErrHandler: func(*cli.Context, error) {},
		OnUsageError:   usageError,
		Flags:          connectionFlags(),
		Commands: []*cli.Command{
			p.applyCommand(), p.createCommand(), p.updateCommand(), p.deleteCommand(), p.clearCommand(),
			p.getCommand(), p.describeCommand(), p.whyCommand(), p.traceCommand(), p.topCommand(), p.logsCommand(),
			p.execCommand(), p.attachCommand(), p.cpCommand(), p.portForwardCommand(), p.proxyCommand(), p.clusterInfoCommand(),
			p.scaleCommand(), p.autoscaleCommand(), p.exposeCommand(), p.rolloutCommand(), p.labelCommand(), p.annotateCommand(), p.cordonCommand(), p.uncordonCommand(), p.drainCommand(),
			p.cfgCommand(), p.funcCommand(), p.triggerCommand(), p.wfCommand(), p.gpuCommand(), p.tokenCommand(), p.etcdCommand(),
			p.imageCommand(), p.versionCommand(), p.completionCommand(), p.completeCommand(),
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return unknownCommand(c.App.Commands, c.Args().First())
			}
			return cli.ShowAppHelp(c)
		},
	}
	for _, c := range app.Commands {
		prepare(c)
	}
	return app
}

// prepare makes the settings that all commands share.
func prepare(c *cli.Command) {
	c.OnUsageError = usageError
	// Otherwise "help" could not be the name of an object.
	c.HideHelpCommand = true
	for _, sub := range c.Subcommands {
		prepare(sub)
	}
}

func usageError(c *cli.Context, err error, _ bool) error {
	return exit.Usagef("%v; see %s --help", err, c.Command.HelpName)
}

func unknownCommand(commands []*cli.Command, word string) error {
	var names []string
	for _, c := range commands {
		if !c.Hidden {
			names = append(names, c.Names()...)
		}
	}
	if near := suggest.Nearest(word, names); len(near) > 0 {
		return exit.Usagef("there is no command %q; did you mean %s?", word, strings.Join(near, ", "))
	}
	return exit.Usagef("there is no command %q; see minik8sd ctl --help", word)
}

func description() string {
	var kinds []string
	for _, k := range api.Kinds {
		kinds = append(kinds, k.Plural)
	}
	return "Kinds: " + strings.Join(kinds, ", ") + "; also in the singular, by their short names, in any case.\n" +
		"Names: NAME, NAMESPACE/NAME or a UID; KIND/NAME is one word. Flags may stand anywhere.\n" +
		"Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 exists or conflicts, 5 no server.\n" +
		"Start with: minik8sd ctl get pods -A; minik8sd ctl why pod NAME."
}
