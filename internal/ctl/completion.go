package ctl

import (
	"context"
	"time"

	"github.com/urfave/cli/v2"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/ctl/commandline"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/target"
)

func (p *program) completionCommand() *cli.Command {
	return &cli.Command{
		Name: "completion", Usage: "print a script that completes commands and names in a shell", ArgsUsage: "bash|zsh|fish",
		Description: "bash: source <(minik8sd ctl completion bash)\nzsh:  source <(minik8sd ctl completion zsh)\n" +
			"fish: minik8sd ctl completion fish | source",
		Action: func(c *cli.Context) error {
			script, ok := commandline.Scripts[c.Args().First()]
			if !ok {
				return exit.Usagef("completion for which shell? bash, zsh or fish")
			}
			_, err := p.Out.Write([]byte(script))
			return err
		},
	}
}

func (p *program) completeCommand() *cli.Command {
	return &cli.Command{
		Name: "__complete", Hidden: true,
		Action: func(c *cli.Context) error {
			words := c.Args().Slice()
			if len(words) == 0 {
				words = []string{""}
			}
			before, last := words[:len(words)-1], words[len(words)-1]
			arguments := func(command string, words []string) []string { return p.arguments(c, command, words) }
			for _, word := range commandline.Complete(c.App.Flags, c.App.Commands, before, last, arguments) {
				p.Say("%s", word)
			}
			return nil
		},
	}
}

// completeIn is the time limit of a completion, because a person waits for it.
const completeIn = time.Second

// arguments returns the kinds, or the names of a kind's objects, that a command takes at this position.
func (p *program) arguments(c *cli.Context, command string, words []string) []string {
	ctx, cancel := context.WithTimeout(c.Context, completeIn)
	defer cancel()
	kind := ""
	switch command {
	case "completion":
		return []string{"bash", "zsh", "fish"}
	case "logs", "port-forward":
		kind = api.Pods.Plural
	case "trace":
		if kind = api.Pods.Plural; len(words) > 0 {
			kind = api.Services.Plural
		}
	case "gpu":
		kind = api.GpuJobs.Plural
		if len(words) > 0 && (words[0] == "trust" || words[0] == "login") {
			kind = api.SlurmClusters.Plural
		}
	case "cordon", "uncordon", "drain":
		kind = api.Nodes.Plural
	case "get", "describe", "delete", "why", "label", "annotate", "expose", "autoscale", "apply", "create", "update":
		if len(words) == 0 {
			return p.kinds(ctx, c)
		}
		kind = words[0]
	default:
		return nil
	}
	return p.names(ctx, c, kind)
}

// kinds returns the plurals of the kinds that the server serves; of those that are compiled in, if they do not arrive in
// time.
func (p *program) kinds(ctx context.Context, c *cli.Context) []string {
	kinds := api.Kinds
	if s, err := p.session(c); err == nil {
		kinds, _ = s.Served(ctx) // the compiled-in ones if it fails
	}
	var plurals []string
	for _, k := range kinds {
		plurals = append(plurals, k.Plural)
	}
	return plurals
}

// names returns the names of a kind's objects; none if they do not arrive in time.
func (p *program) names(ctx context.Context, c *cli.Context, word string) []string {
	s, err := p.session(c)
	if err != nil {
		return nil
	}
	kind, err := target.Kind(ctx, s, word)
	if err != nil {
		return nil
	}
	list, err := s.API.List(ctx, kind, client.ListOptions{Namespace: s.NamespaceFor(kind)})
	if err != nil {
		return nil
	}
	var names []string
	for _, obj := range list.Items {
		names = append(names, obj.GetName())
	}
	return names
}
