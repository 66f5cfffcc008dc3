package ctl

import (
	"io"
	"math"
	"net/url"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/ctl/brief"
)

func (p *program) logsCommand() *cli.Command {
	return &cli.Command{
		Name: "logs", Aliases: []string{"log"}, Usage: "print what a container wrote", ArgsUsage: "POD [CONTAINER]",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on with what it writes"},
			&cli.StringFlag{Name: "container", Aliases: []string{"c"}, Usage: "the `CONTAINER`, where the pod has several"},
			&cli.BoolFlag{Name: "previous", Aliases: []string{"p"}, Usage: "of the run before this one"},
			&cli.Int64Flag{Name: "tail", Value: -1, Usage: "the last `N` lines only"},
			&cli.DurationFlag{Name: "since", Usage: "what is not older: 10m"},
			&cli.BoolFlag{Name: "timestamps", Usage: "each line with its time"},
		},
		Action: func(c *cli.Context) error {
			if c.NArg() < 1 || c.NArg() > 2 {
				return usagef("logs POD [CONTAINER]: which pod?")
			}
			s, err := p.session(c)
			if err != nil {
				return err
			}
			return s.logs(c)
		},
	}
}

func (s *session) logs(c *cli.Context) error {
	pod, err := s.pod(c.Context, c.Args().First())
	if err != nil {
		return err
	}
	container := c.String("container")
	if container == "" {
		container = c.Args().Get(1)
	}
	if container, err = chooseContainer(pod, container); err != nil {
		return err
	}
	query := url.Values{"container": {container}}
	for flag, key := range map[string]string{"follow": "follow", "previous": "previous", "timestamps": "timestamps"} {
		if c.Bool(flag) {
			query.Set(key, "true")
		}
	}
	if n := c.Int64("tail"); n >= 0 {
		query.Set("tailLines", strconv.FormatInt(n, 10))
	}
	if d := c.Duration("since"); d > 0 {
		query.Set("sinceSeconds", strconv.FormatInt(int64(math.Ceil(d.Seconds())), 10))
	}
	log, err := s.api.Logs(c.Context, pod.Namespace, pod.Name, query)
	if err != nil {
		if codeOf(err) == codeFailed {
			return failf(codeFailed, "%s\nminik8sd ctl why pod %s%s tells more", message(err), pod.Name, brief.Namespace(pod.Namespace))
		}
		return err
	}
	defer log.Close()
	if _, err = io.Copy(s.out, log); c.Context.Err() != nil {
		return nil
	}
	return err
}

// chooseContainer finds the container whose log is meant.
func chooseContainer(pod *corev1.Pod, name string) (string, error) {
	var names, all []string
	for _, c := range pod.Spec.Containers {
		names = append(names, c.Name)
	}
	for _, c := range pod.Spec.InitContainers {
		all = append(all, c.Name)
	}
	all = append(all, names...)
	for _, c := range pod.Spec.EphemeralContainers {
		all = append(all, c.Name)
	}
	if name == "" {
		name = podspec.DefaultContainer(pod)
	}
	if name == "" {
		return "", usagef("pod %s has %d containers: choose one with -c: %s", pod.Name, len(names), strings.Join(all, ", "))
	}
	for _, n := range all {
		if n == name {
			return n, nil
		}
	}
	return "", failf(codeNotFound, "pod %s has no container %q; it has: %s", pod.Name, name, strings.Join(all, ", "))
}
