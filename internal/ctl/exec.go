package ctl

import (
	"context"
	"strings"

	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/client/remote"
)

// streamFlags are what exec and attach have in common.
func streamFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "stdin", Aliases: []string{"i"}, Usage: "pass the input of this command on"},
		&cli.BoolFlag{Name: "tty", Aliases: []string{"t"}, Usage: "the container's end is a terminal, and this one is handed over to it"},
		containerFlag(),
	}
}

func containerFlag() cli.Flag {
	return &cli.StringFlag{Name: "container", Aliases: []string{"c"}, Usage: "the `CONTAINER`, where the pod has several"}
}

func (p *program) execCommand() *cli.Command {
	return &cli.Command{
		Name: "exec", Usage: "run a command in a container; its exit code is this command's", ArgsUsage: "POD -- COMMAND [ARGUMENTS]",
		Flags: streamFlags(),
		Action: func(c *cli.Context) error {
			if c.NArg() < 2 {
				return usagef("exec POD -- COMMAND: which pod, and which command?")
			}
			s, pod, container, err := p.aim(c)
			if err != nil {
				return err
			}
			return p.onTerminal(c, c.Bool("tty"), func(st remote.Streams) error {
				return s.api.Exec(c.Context, pod.Namespace, pod.Name, container, c.Args().Tail(), st)
			})
		},
	}
}

func (p *program) attachCommand() *cli.Command {
	return &cli.Command{
		Name: "attach", Usage: "see what a container writes from now on, and write to it", ArgsUsage: "POD", Flags: streamFlags(),
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return usagef("attach POD: which pod?")
			}
			s, pod, container, err := p.aim(c)
			if err != nil {
				return err
			}
			tty := c.Bool("tty")
			if tty && !hasTTY(pod, container) {
				p.note("container %s has no terminal of its own (tty: true): going on without", container)
				tty = false
			}
			if c.Bool("stdin") && p.inTTY {
				p.note("attached; if nothing is to be seen, press enter")
			}
			return p.onTerminal(c, tty, func(st remote.Streams) error {
				return s.api.Attach(c.Context, pod.Namespace, pod.Name, container, st)
			})
		},
	}
}

// aim finds the pod that the first argument names, and the container that is meant.
func (p *program) aim(c *cli.Context) (*session, *corev1.Pod, string, error) {
	s, err := p.session(c)
	if err != nil {
		return nil, nil, "", err
	}
	pod, err := s.pod(c.Context, c.Args().First())
	if err != nil {
		return nil, nil, "", err
	}
	container, err := chooseContainer(pod, c.String("container"))
	return s, pod, container, err
}

// pod finds a pod by NAME, NAMESPACE/NAME, pod/NAME or UID.
func (s *session) pod(ctx context.Context, name string) (*corev1.Pod, error) {
	if word, rest, ok := strings.Cut(name, "/"); ok && api.ByWord(word) == api.Pods {
		name = rest
	}
	obj, err := s.resolve(ctx, target{api.Pods, name})
	if err != nil {
		return nil, err
	}
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, failf(codeFailed, "the server's answer is no pod")
	}
	return pod, nil
}

// hasTTY says whether a container was made with a terminal.
func hasTTY(pod *corev1.Pod, name string) bool {
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers, ephemeralContainers(pod)} {
		for i := range list {
			if list[i].Name == name {
				return list[i].TTY
			}
		}
	}
	return false
}
