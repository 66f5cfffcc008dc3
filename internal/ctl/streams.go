package ctl

import (
	"math"
	"net/url"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/client/remote"
	"minik8s/internal/ctl/cp"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
	"minik8s/internal/ctl/stream"
	"minik8s/internal/ctl/target"
)

// streamFlags are the flags that exec and attach share.
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

// containerRef is the container that a command works on.
type containerRef struct {
	*session.Session
	pod       *corev1.Pod
	container string
}

// container finds a pod and its container: the one from --container, or the given one, or the default one.
func (p *program) container(c *cli.Context, pod, container string) (*containerRef, error) {
	s, err := p.session(c)
	if err != nil {
		return nil, err
	}
	a := &containerRef{Session: s}
	if a.pod, err = target.Pod(c.Context, s, pod); err != nil {
		return nil, err
	}
	if given := c.String("container"); given != "" {
		container = given
	}
	a.container, err = stream.Container(a.pod, container)
	return a, err
}

func (p *program) execCommand() *cli.Command {
	return &cli.Command{
		Name: "exec", Usage: "run a command in a container; its exit code is this command's", ArgsUsage: "POD -- COMMAND [ARGUMENTS]",
		Flags: streamFlags(),
		Action: func(c *cli.Context) error {
			if c.NArg() < 2 {
				return exit.Usagef("exec POD -- COMMAND: which pod, and which command?")
			}
			a, err := p.container(c, c.Args().First(), "")
			if err != nil {
				return err
			}
			return stream.Run(p.Console, c.Bool("stdin"), c.Bool("tty"), func(st remote.Streams) error {
				return a.API.Exec(c.Context, a.pod.Namespace, a.pod.Name, a.container, c.Args().Tail(), st)
			})
		},
	}
}

func (p *program) attachCommand() *cli.Command {
	return &cli.Command{
		Name: "attach", Usage: "see what a container writes from now on, and write to it", ArgsUsage: "POD", Flags: streamFlags(),
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return exit.Usagef("attach POD: which pod?")
			}
			a, err := p.container(c, c.Args().First(), "")
			if err != nil {
				return err
			}
			tty := c.Bool("tty")
			if tty && !stream.HasTTY(a.pod, a.container) {
				p.Note("container %s has no terminal of its own (tty: true): going on without", a.container)
				tty = false
			}
			if c.Bool("stdin") && p.InTTY {
				p.Note("attached; if nothing is to be seen, press enter")
			}
			return stream.Run(p.Console, c.Bool("stdin"), tty, func(st remote.Streams) error {
				return a.API.Attach(c.Context, a.pod.Namespace, a.pod.Name, a.container, st)
			})
		},
	}
}

func (p *program) logsCommand() *cli.Command {
	return &cli.Command{
		Name: "logs", Aliases: []string{"log"}, Usage: "print what a container wrote", ArgsUsage: "POD [CONTAINER] | gpujob/NAME [TASK]",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on with what it writes"},
			containerFlag(),
			&cli.BoolFlag{Name: "previous", Aliases: []string{"p"}, Usage: "of the run before this one"},
			&cli.Int64Flag{Name: "tail", Value: -1, Usage: "the last `N` lines only"},
			&cli.DurationFlag{Name: "since", Usage: "what is not older: 10m"},
			&cli.BoolFlag{Name: "timestamps", Usage: "each line with its time"},
		},
		Action: func(c *cli.Context) error {
			if c.NArg() < 1 || c.NArg() > 2 {
				return exit.Usagef("logs POD [CONTAINER]: which pod?")
			}
			s, err := p.session(c)
			if err != nil {
				return err
			}
			if done, err := gpuLogs(c, s, c.Args().First()); done {
				return err
			}
			a, err := p.container(c, c.Args().First(), c.Args().Get(1))
			if err != nil {
				return err
			}
			return stream.Logs(c.Context, a.Session, a.pod, a.container, logQuery(c))
		},
	}
}

// logQuery returns the query for pods/log that the flags ask for.
func logQuery(c *cli.Context) url.Values {
	query := url.Values{}
	for _, flag := range []string{"follow", "previous", "timestamps"} {
		if c.Bool(flag) {
			query.Set(flag, "true")
		}
	}
	if n := c.Int64("tail"); n >= 0 {
		query.Set("tailLines", strconv.FormatInt(n, 10))
	}
	if d := c.Duration("since"); d > 0 {
		query.Set("sinceSeconds", strconv.FormatInt(int64(math.Ceil(d.Seconds())), 10))
	}
	return query
}

func (p *program) cpCommand() *cli.Command {
	return &cli.Command{
		Name: "cp", Usage: "copy files to or from a container, which must have tar",
		ArgsUsage: "FILE POD:PATH | POD:PATH FILE", Flags: []cli.Flag{containerFlag()},
		Description: "A directory is copied with all in it. What is copied onto a directory comes to lie in it.",
		Action: func(c *cli.Context) error {
			if c.NArg() != 2 {
				return exit.Usagef("cp FILE POD:PATH, or cp POD:PATH FILE")
			}
			from, fromPod := cp.PodPath(c.Args().Get(0))
			to, toPod := cp.PodPath(c.Args().Get(1))
			if (fromPod == "") == (toPod == "") {
				return exit.Usagef("cp needs one path of a container, written POD:PATH, and one of this machine")
			}
			a, err := p.container(c, fromPod+toPod, "")
			if err != nil {
				return err
			}
			x := &cp.Copying{Session: a.Session, Pod: a.pod, Container: a.container}
			if toPod != "" {
				return x.In(c.Context, from, to)
			}
			return x.Out(c.Context, from, to)
		},
	}
}

func (p *program) portForwardCommand() *cli.Command {
	return &cli.Command{
		Name: "port-forward", Usage: "make ports of a pod ports of this machine", ArgsUsage: "POD | KIND/NAME [LOCAL:]PORT...",
		Description: "Of a service or a workload one pod that is ready is taken, and kept: it balances no load. The ports are then the\n" +
			"service's, by number or name.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "address", Value: "127.0.0.1", Usage: "the `ADDRESS` of this machine to listen on"},
		},
		Action: func(c *cli.Context) error {
			if c.NArg() < 2 {
				return exit.Usagef("port-forward POD [LOCAL:]PORT...: which pod, and which ports?")
			}
			var wanted []stream.Wanted
			for _, arg := range c.Args().Tail() {
				w, err := stream.ParseWanted(arg)
				if err != nil {
					return err
				}
				wanted = append(wanted, w)
			}
			s, err := p.session(c)
			if err != nil {
				return err
			}
			obj, err := forwarded(c, s)
			if err != nil {
				return err
			}
			pod, err := stream.PodOf(c.Context, s, obj)
			if err != nil {
				return err
			}
			svc, _ := obj.(*corev1.Service)
			var pairs []stream.PortPair
			for _, w := range wanted {
				pair, err := w.Pair(svc, pod)
				if err != nil {
					return err
				}
				pairs = append(pairs, pair)
			}
			return stream.Forward(c.Context, s, pod, c.String("address"), pairs)
		},
	}
}

// forwarded finds what port-forward's first argument names: KIND/NAME, or a pod.
func forwarded(c *cli.Context, s *session.Session) (api.Object, error) {
	arg := c.Args().First()
	word, name, ok := strings.Cut(arg, "/")
	kind := api.Find(stream.Kinds, word)
	if !ok || kind == nil {
		if ok && api.ByWord(word) != nil {
			return nil, exit.Usagef("port-forward leads to pods, services and workloads, not to %s", arg)
		}
		return target.Pod(c.Context, s, arg)
	}
	return target.Resolve(c.Context, s, target.Target{Kind: kind, Name: name})
}
