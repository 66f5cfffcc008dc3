package ctl

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/ctl/console"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/target"
	"minik8s/internal/ctl/trace"
)

func (p *program) traceCommand() *cli.Command {
	return &cli.Command{
		Name: "trace", Usage: "the way of a connection from a pod to a service, tried, and where it stops", ArgsUsage: "POD SERVICE[:PORT]",
		Description: "The port is a number or a name; it may be left out where the service has one. Exit code 1: a step stops it.",
		Action: func(c *cli.Context) error {
			if c.NArg() != 2 {
				return exit.Usagef("trace POD SERVICE[:PORT]: from which pod, to which service?")
			}
			s, err := p.session(c)
			if err != nil {
				return err
			}
			pod, err := target.Pod(c.Context, s, c.Args().Get(0))
			if err != nil {
				return err
			}
			name, port, _ := strings.Cut(c.Args().Get(1), ":")
			if word, rest, ok := strings.Cut(name, "/"); ok && api.ByWord(word) == api.Services {
				name = rest
			}
			obj, err := target.Resolve(c.Context, s, target.Target{Kind: api.Services, Name: name})
			if err != nil {
				return err
			}
			svc := obj.(*corev1.Service)
			chosen, err := portOf(svc, port)
			if err != nil {
				return err
			}
			t := trace.Of(c.Context, s.API, pod, svc, chosen)
			printTrace(s.Console, t)
			for _, step := range t.Steps {
				if step.State == trace.Stops {
					return exit.Failf(exit.Failed, "the way is not open")
				}
			}
			return nil
		},
	}
}

// portOf finds the port of a Service by its number or name; without either it is the only one.
func portOf(svc *corev1.Service, want string) (*corev1.ServicePort, error) {
	var have []string
	for i := range svc.Spec.Ports {
		p := &svc.Spec.Ports[i]
		if want == "" && len(svc.Spec.Ports) == 1 || want != "" && (p.Name == want || strconv.Itoa(int(p.Port)) == want) {
			return p, nil
		}
		have = append(have, strings.TrimSpace(fmt.Sprintf("%d/%s %s", p.Port, p.Protocol, p.Name)))
	}
	switch {
	case len(have) == 0:
		return nil, exit.Usagef("service %s has no ports", svc.Name)
	case want == "":
		return nil, exit.Usagef("service %s has several ports: say which one, as %s:PORT; it has %s", svc.Name, svc.Name, strings.Join(have, ", "))
	}
	return nil, exit.Usagef("service %s has no port %s; it has %s", svc.Name, want, strings.Join(have, ", "))
}

// marks are how steps are shown.
var marks = map[trace.State]struct{ word, colour string }{
	trace.Passes: {"ok", console.Green}, trace.Stops: {"STOP", console.Red}, trace.Unknown: {"?", console.Yellow},
}

func printTrace(c *console.Console, t trace.Trace) {
	for i, step := range t.Steps {
		m := marks[step.State]
		for j, line := range step.Lines {
			if j == 0 {
				c.Say("%d  %-10s  %s  %s", i+1, step.Name, c.Paint(m.colour, fmt.Sprintf("%-4s", m.word)), line)
			} else {
				c.Say("%21s%s", "", line)
			}
		}
	}
	colour := console.Red
	if t.Good {
		colour = console.Green
	}
	c.Say("\n%s", c.Paint(colour, t.Head))
	section(c, "Next", t.Next, "  ")
}
