package ctl

import (
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/manifest"
	"minik8s/internal/ctl/session"
	"minik8s/internal/ctl/workflows"
)

func (p *program) wfCommand() *cli.Command {
	return &cli.Command{
		Name: "wf", Aliases: []string{"workflow"}, Usage: "workflows: apply and remove them, run them, follow, cancel and draw their runs",
		ArgsUsage: "apply | run | get | watch | cancel | rm | graph",
		Subcommands: []*cli.Command{
			{Name: "apply", Usage: "make a workflow, or change it; one with params runs with them", ArgsUsage: "-f FILE | --chain FUNCTION", Action: p.wfApply,
				Flags: append(append(fileFlags(), writeFlags()...), &cli.StringFlag{Name: "chain", Usage: "make one of a `FUNCTION` and those that it names as left and right"})},
			{Name: "run", Usage: "start a run, with the workflow's params or other input", ArgsUsage: "NAME [-d JSON]", Action: p.wfRun, Flags: []cli.Flag{
				&cli.StringFlag{Name: "data", Aliases: []string{"d"}, Usage: "the input, as `JSON`"},
				&cli.BoolFlag{Name: "wait", Usage: "print its steps until it has ended"}}},
			{Name: "get", Usage: "list workflows and their runs", ArgsUsage: "[NAME...]", Flags: getFlags(), Action: func(c *cli.Context) error {
				if !c.Args().Present() {
					return p.get(c, []string{api.Workflows.Plural + "," + api.WorkflowRuns.Plural})
				}
				return p.get(c, append([]string{api.Workflows.Plural}, c.Args().Slice()...))
			}},
			{Name: "watch", Usage: "print a run's steps as they come, until it has ended", ArgsUsage: "RUN|WORKFLOW", Flags: asRun(), Action: p.onRun(func(c *cli.Context, s *session.Session, r *minik8s.WorkflowRun) error {
				return workflows.Watch(c.Context, s, r)
			})},
			{Name: "cancel", Usage: "end a run", ArgsUsage: "RUN|WORKFLOW", Flags: asRun(), Action: p.onRun(func(c *cli.Context, s *session.Session, r *minik8s.WorkflowRun) error {
				if err := workflows.Cancel(c.Context, s, r); err != nil {
					return err
				}
				s.Say("run %q cancelled", r.Name)
				return nil
			})},
			{Name: "rm", Aliases: []string{"delete", "del"}, Usage: "remove a workflow, and end its runs", ArgsUsage: "NAME", Action: p.wfRemove},
			{Name: "graph", Usage: "draw a workflow, a run with what it has done, or a chain of functions", ArgsUsage: "WORKFLOW|RUN|FUNCTION", Action: p.wfGraph,
				Flags: append(asRun(), &cli.BoolFlag{Name: "svg", Usage: "as a picture (SVG), not as text"})},
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return unknownCommand(c.Command.Subcommands, c.Args().First())
			}
			return cli.ShowSubcommandHelp(c)
		},
	}
}

// asRun says which one is meant where a workflow and a run have one name.
func asRun() []cli.Flag {
	return []cli.Flag{&cli.BoolFlag{Name: "run", Usage: "the name is a run's, also if a workflow has it"}}
}

// wfName is the one argument of a command, with its namespace.
func (p *program) wfName(c *cli.Context) (s *session.Session, namespace, name string, err error) {
	if c.NArg() != 1 {
		return nil, "", "", exit.Usagef("%s %s", c.Command.HelpName, c.Command.ArgsUsage)
	}
	if s, err = p.session(c); err != nil {
		return nil, "", "", err
	}
	namespace, name = s.NamespaceFor(api.Workflows), c.Args().First()
	if ns, n, ok := strings.Cut(name, "/"); ok {
		namespace, name = ns, n
	}
	return s, namespace, name, nil
}

// onRun is a command about a run.
func (p *program) onRun(do func(*cli.Context, *session.Session, *minik8s.WorkflowRun) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		s, namespace, name, err := p.wfName(c)
		if err != nil {
			return err
		}
		r, err := workflows.Find(c.Context, s, namespace, name, c.Bool("run"))
		if err != nil {
			return err
		}
		return do(c, s, r)
	}
}

func (p *program) wfApply(c *cli.Context) error {
	start := c.String("chain")
	if start == "" {
		return p.eachDocument(c, manifest.Apply)
	}
	if c.NArg() > 0 || c.IsSet("filename") {
		return exit.Usagef("--chain FUNCTION stands alone: without -f, and without another name\n%s %s", c.Command.HelpName, c.Command.ArgsUsage)
	}
	s, err := p.session(c)
	if err != nil {
		return err
	}
	doc, err := workflows.OfChain(c.Context, s, s.NamespaceFor(api.Workflows), start)
	if err != nil {
		return err
	}
	return p.write(c, s, []*manifest.Document{doc}, manifest.Apply)
}

func (p *program) wfRun(c *cli.Context) error {
	s, namespace, name, err := p.wfName(c)
	if err != nil {
		return err
	}
	r, err := workflows.Run(c.Context, s, namespace, name, c.String("data"))
	if err != nil {
		return err
	}
	if c.Bool("wait") {
		return workflows.Watch(c.Context, s, r)
	}
	s.Say("run %q started", r.Name)
	return nil
}

func (p *program) wfRemove(c *cli.Context) error {
	s, namespace, name, err := p.wfName(c)
	if err != nil {
		return err
	}
	if _, err := s.API.Delete(c.Context, client.Key{Kind: api.Workflows, Namespace: namespace, Name: name}, nil); err != nil {
		return err
	}
	s.Say("workflow %q removed", name)
	return nil
}

func (p *program) wfGraph(c *cli.Context) error {
	s, namespace, name, err := p.wfName(c)
	if err != nil {
		return err
	}
	text, err := workflows.Graph(c.Context, s, namespace, name, c.Bool("run"), c.Bool("svg"))
	if err == nil {
		_, err = io.WriteString(s.Out, text)
	}
	return err
}
