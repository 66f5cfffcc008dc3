package ctl

import (
	"context"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

func (p *program) whyCommand() *cli.Command {
	return &cli.Command{
		Name: "why", Usage: "in one screen: why an object is not well, and the next command to type",
		ArgsUsage: "KIND NAME | KIND/NAME",
		Action: func(c *cli.Context) error {
			targets, err := whyTargets(c.Args().Slice())
			if err != nil {
				return err
			}
			s, err := p.session(c)
			if err != nil {
				return err
			}
			for i, t := range targets {
				obj, err := s.resolve(c.Context, t)
				if err != nil {
					return err
				}
				if i > 0 {
					s.say("")
				}
				now, err := s.look(c.Context, t.kind, obj)
				if err != nil {
					return err
				}
				s.printVerdict(explain(now))
			}
			return nil
		},
	}
}

// whyTargets wants names; a lone word that is no kind is a pod's name.
func whyTargets(args []string) ([]target, error) {
	if len(args) == 1 && !strings.Contains(args[0], "/") && api.ByWord(args[0]) == nil {
		return []target{{api.Pods, args[0]}}, nil
	}
	targets, err := parseTargets(args)
	if err != nil {
		return nil, err
	}
	for _, t := range targets {
		if t.name == "" {
			return nil, usagef("why which %s? Give its name", t.kind.Singular)
		}
	}
	return targets, nil
}

// look gathers what explain needs to know. What cannot be had is left out: half an explanation is
// better than none.
func (s *session) look(ctx context.Context, kind *api.Kind, obj api.Object) (situation, error) {
	now := situation{kind: kind, obj: obj, now: s.now(), logs: map[string]string{}}
	var err error
	if now.events, err = s.eventsOf(ctx, obj); codeOf(err) == codeUnreachable {
		return now, err
	}
	w, keeps := workloadOf(obj)
	if keeps && w.selector != nil {
		if sel, err := metav1.LabelSelectorAsSelector(w.selector); err == nil {
			now.pods, _, _ = client.All[*corev1.Pod](ctx, s.api, api.Pods, client.ListOptions{Namespace: obj.GetNamespace(), Labels: sel})
			now.told = s.eventsOfFirstSick(ctx, now.pods)
		}
	}
	if keeps || kind == api.Pods || kind == api.Nodes {
		now.nodes, _, _ = client.All[*corev1.Node](ctx, s.api, api.Nodes, client.ListOptions{})
	}
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return now, nil
	}
	for _, c := range crashed(pod) {
		query := url.Values{"container": {c.name}, "tailLines": {strconv.Itoa(logTail)}}
		if c.previous {
			query.Set("previous", "true")
		}
		log, err := s.api.Logs(ctx, pod.Namespace, pod.Name, query)
		if err != nil {
			continue
		}
		data, _ := io.ReadAll(io.LimitReader(log, 64<<10))
		log.Close()
		now.logs[c.name] = string(data)
	}
	return now, nil
}

// eventsOfFirstSick are the events about the pod that explains a workload's trouble.
func (s *session) eventsOfFirstSick(ctx context.Context, pods []*corev1.Pod) []*corev1.Event {
	for _, p := range pods {
		if c := podCondition(p, corev1.PodReady); p.Status.Phase != corev1.PodSucceeded && (c == nil || c.Status != corev1.ConditionTrue) {
			events, _ := s.eventsOf(ctx, p)
			return events
		}
	}
	return nil
}

type crashedContainer struct {
	name     string
	previous bool
}

// crashed are the containers whose last words help.
func crashed(pod *corev1.Pod) []crashedContainer {
	var out []crashedContainer
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range list {
			status := &list[i]
			now, last := status.State.Terminated, status.LastTerminationState.Terminated
			switch {
			case now != nil && now.ExitCode != 0:
				out = append(out, crashedContainer{status.Name, false})
			case status.State.Waiting != nil && last != nil:
				out = append(out, crashedContainer{status.Name, true})
			}
		}
	}
	return out
}

func (s *session) printVerdict(v verdict) {
	colour := red
	if v.good {
		colour = green
	}
	s.say("%s", s.paint(colour, v.head))
	s.section("Why", v.why, "  ")
	s.section(v.logHead, v.log, "  | ")
	s.section("Next", v.next, "  ")
}

func (s *session) section(head string, lines []string, indent string) {
	if len(lines) == 0 {
		return
	}
	s.say("\n%s", s.paint(bold, head))
	for _, l := range lines {
		s.say("%s%s", indent, l)
	}
}
