package ctl

import (
	"context"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
	appsv1 "k8s.io/api/apps/v1"
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
	keeps := keepsPods(obj)
	if keeps || kind == api.Pods || kind == api.Nodes {
		now.nodes, _, _ = client.All[*corev1.Node](ctx, s.api, api.Nodes, client.ListOptions{})
	}
	switch o := obj.(type) {
	case *corev1.Pod:
		now.logs = s.lastLogs(ctx, o)
		now.placed = s.inTheWay(ctx, o)
	case *corev1.Namespace:
		if o.DeletionTimestamp != nil {
			now.held = s.heldIn(ctx, o.Name)
		}
	}
	if keeps {
		s.lookAtPods(ctx, &now)
	}
	return now, nil
}

// lookAtPods gathers what explains a workload: its pods, which of them are new, and all about the one that
// stands worst.
func (s *session) lookAtPods(ctx context.Context, now *situation) {
	w, _ := now.workload()
	if w.selector == nil {
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(w.selector)
	if err != nil {
		return
	}
	in := client.ListOptions{Namespace: now.obj.GetNamespace(), Labels: selector}
	pods, _, err := client.All[*corev1.Pod](ctx, s.api, api.Pods, in)
	if err != nil {
		return
	}
	// What others keep is no concern of this one, though the selector fits.
	now.pods = slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return !mayBelong(now.obj, p) })
	now.template = s.templateOf(ctx, now.obj, in)
	if pod := now.blamed(); pod != nil {
		now.told, _ = s.eventsOf(ctx, pod)
		now.logs = s.lastLogs(ctx, pod)
		now.placed = s.inTheWay(ctx, pod)
	}
}

// inTheWay are the pods that may be why a pod has no node: all that are on one and have not ended.
func (s *session) inTheWay(ctx context.Context, pod *corev1.Pod) []*corev1.Pod {
	if pod.Spec.NodeName != "" {
		return nil
	}
	pods, _, _ := client.All[*corev1.Pod](ctx, s.api, api.Pods, client.ListOptions{})
	return slices.DeleteFunc(pods, func(p *corev1.Pod) bool {
		return p.Spec.NodeName == "" || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
}

// mayBelong says whether a pod is a workload's own; a Deployment's belong to its sets.
func mayBelong(obj api.Object, pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	_, deployment := obj.(*appsv1.Deployment)
	if deployment {
		return owner != nil && owner.Kind == "ReplicaSet"
	}
	return owner != nil && owner.UID == obj.GetUID()
}

// lastLogs are the last lines of a pod's containers that have crashed.
func (s *session) lastLogs(ctx context.Context, pod *corev1.Pod) map[string]string {
	logs := map[string]string{}
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
		logs[c.name] = string(data)
	}
	return logs
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
