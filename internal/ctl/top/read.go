package top

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
	"minik8s/internal/ctl/used"
)

// patience is how long an answer may take. The API server waits three seconds for nodes that do not answer.
const patience = 10 * time.Second

// read asks for what is shown. The error says what to do, also when nobody answers.
func read(ctx context.Context, s *session.Session, r *Request) ([]row, error) {
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ask := readPods
	if r.View == Nodes {
		ask = readNodes
	}
	rows, err := ask(limit, s, r)
	if err != nil && limit.Err() != nil && ctx.Err() == nil {
		return nil, exit.Failf(exit.Unreachable, "the API server at %s has accepted the question, and has not answered it in %v", s.API.At(), patience)
	}
	return rows, err
}

func readNodes(ctx context.Context, s *session.Session, r *Request) ([]row, error) {
	list, err := used.Nodes(ctx, s, r.Labels)
	if err != nil {
		return nil, err
	}
	nodes, _, err := client.All[*corev1.Node](ctx, s.API, api.Nodes, client.ListOptions{})
	if err != nil {
		return nil, err
	}
	var out []row
	for _, n := range nodes {
		i := slices.IndexFunc(list, func(m v1beta1.NodeMetrics) bool { return m.Name == n.Name })
		if i < 0 {
			continue // it does not answer, or was not selected
		}
		m := &list[i]
		out = append(out, row{node: n.Name, point: pointOf(m.Usage),
			whole: point{n.Status.Allocatable.Cpu().AsApproximateFloat64(), n.Status.Allocatable.Memory().AsApproximateFloat64()}})
	}
	return named(out, r.Names, func(x *row) string { return x.node }, "node")
}

func readPods(ctx context.Context, s *session.Session, r *Request) ([]row, error) {
	namespace := s.Namespace
	if r.AllNamespaces {
		namespace = ""
	}
	list, err := used.Pods(ctx, s, namespace, r.Labels)
	if err != nil {
		return nil, err
	}
	selected, err := labels.Parse(r.Labels)
	if err != nil {
		return nil, exit.Usagef("-l %q: %v", r.Labels, err)
	}
	// Metrics do not have restarts: they are what the kubelet says in the pod's status.
	all, _, err := client.All[*corev1.Pod](ctx, s.API, api.Pods, client.ListOptions{Namespace: namespace, Labels: selected})
	if err != nil {
		return nil, err
	}
	pods := make(map[[2]string]*corev1.Pod, len(all))
	for _, p := range all {
		pods[[2]string{p.Namespace, p.Name}] = p
	}
	var out []row
	for _, m := range list {
		pod := pods[[2]string{m.Namespace, m.Name}]
		if pod == nil { // it has gone, or has just come
			pod = &corev1.Pod{}
		}
		whole := row{namespace: m.Namespace, pod: m.Name, restarts: brief.Restarts(pod)}
		for _, c := range m.Containers {
			p := pointOf(c.Usage)
			whole.cpu += p.cpu
			whole.memory += p.memory
			if r.View == Containers {
				out = append(out, row{namespace: m.Namespace, pod: m.Name, container: c.Name, point: p, restarts: restarts(pod, c.Name)})
			}
		}
		if r.View == Pods {
			out = append(out, whole)
		}
	}
	return named(out, r.Names, func(x *row) string { return x.pod }, "pod")
}

// restarts is how often a container of a pod was started again.
func restarts(pod *corev1.Pod, container string) int {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range list {
			if list[i].Name == container {
				return int(list[i].RestartCount)
			}
		}
	}
	return 0
}

func pointOf(used corev1.ResourceList) point {
	return point{used.Cpu().AsApproximateFloat64(), used.Memory().AsApproximateFloat64()}
}

// named keeps the rows that are asked for by name; it is an error (exit code 3) if there is none.
func named(rows []row, names []string, name func(*row) string, what string) ([]row, error) {
	if len(names) == 0 {
		return rows, nil
	}
	for _, n := range names {
		if !slices.ContainsFunc(rows, func(x row) bool { return name(&x) == n }) {
			return nil, exit.Failf(exit.NotFound, "nothing is known of what %s %q uses: it does not run, or it has just been started", what, n)
		}
	}
	return slices.DeleteFunc(rows, func(x row) bool { return !slices.Contains(names, name(&x)) }), nil
}
