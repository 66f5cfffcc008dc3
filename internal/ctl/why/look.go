package why

import (
	"context"
	"io"
	"net/url"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/api/placement"
	"minik8s/internal/client"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/ways"
)

// Source is what explanations are made from: the API and the logs of pods.
type Source interface {
	client.Interface
	// Logs returns the log of a pod's container, as pods/log does.
	Logs(ctx context.Context, namespace, pod string, query url.Values) (io.ReadCloser, error)
	ways.API
	// Kinds returns the stored kinds that the server serves.
	Kinds(ctx context.Context) ([]*api.Kind, error)
}

// Explain looks at an object and what it depends on, and explains its state and what to do. What cannot be read is left
// out, because half an explanation is better than none. The error is that of the first request; the explanation is
// returned with it.
func Explain(ctx context.Context, from Source, kind *api.Kind, obj api.Object, now time.Time) (Explanation, error) {
	s, err := (&look{from}).at(ctx, kind, obj, now)
	return explain(s), err
}

// look collects what explain needs.
type look struct{ api Source }

func (l *look) at(ctx context.Context, kind *api.Kind, obj api.Object, when time.Time) (situation, error) {
	now := situation{kind: kind, obj: obj, now: when, logs: map[string]string{}}
	var err error
	now.events, err = brief.EventsOf(ctx, l.api, obj)
	keeps := keepsPods(obj)
	if keeps || kind == api.Pods || kind == api.Nodes {
		now.nodes, _, _ = client.All[*corev1.Node](ctx, l.api, api.Nodes, client.ListOptions{})
	}
	switch o := obj.(type) {
	case *corev1.Pod:
		now.logs = l.lastLogs(ctx, o)
		l.neighbours(ctx, &now, o)
	case *corev1.Service:
		now.service = l.service(ctx, o)
	case *minik8s.Function:
		now.function = l.function(ctx, o)
	case *corev1.Namespace:
		if o.DeletionTimestamp != nil {
			now.held = l.heldIn(ctx, o.Name)
		}
	}
	if keeps {
		l.pods(ctx, &now)
	}
	return now, err
}

// pods collects what explains a workload: its pods, which of them are new, and everything about the pod in the worst
// state.
func (l *look) pods(ctx context.Context, now *situation) {
	w, _ := now.workload()
	if w.selector == nil {
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(w.selector)
	if err != nil {
		return
	}
	in := client.ListOptions{Namespace: now.obj.GetNamespace(), Labels: selector}
	pods, _, err := client.All[*corev1.Pod](ctx, l.api, api.Pods, in)
	if err != nil {
		return
	}
	// Pods of other owners do not belong to this workload, even if its selector matches them.
	now.pods = slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return !mayBelong(now.obj, p) })
	now.template = l.templateOf(ctx, now.obj, in)
	if pod := now.blamed(); pod != nil {
		now.told, _ = brief.EventsOf(ctx, l.api, pod)
		now.logs = l.lastLogs(ctx, pod)
		l.neighbours(ctx, now, pod)
	}
}

// neighbours collects the pods that may be the reason why a pod has no node: all that have a node and have not ended.
// The labels of namespaces are read only if a term selects namespaces by them.
func (l *look) neighbours(ctx context.Context, now *situation, pod *corev1.Pod) {
	if pod.Spec.NodeName != "" {
		return
	}
	pods, _, _ := client.All[*corev1.Pod](ctx, l.api, api.Pods, client.ListOptions{})
	now.placed = slices.DeleteFunc(pods, func(p *corev1.Pod) bool {
		return p.Spec.NodeName == "" || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
	if !choosesNamespaces(pod) && !slices.ContainsFunc(now.placed, choosesNamespaces) {
		return
	}
	namespaces, _, _ := client.All[*corev1.Namespace](ctx, l.api, api.Namespaces, client.ListOptions{})
	now.namespaces = placement.NamespaceLabels{}
	for _, ns := range namespaces {
		now.namespaces[ns.Name] = ns.Labels
	}
}

// choosesNamespaces reports whether a required term of a pod selects namespaces by their labels.
func choosesNamespaces(pod *corev1.Pod) bool {
	byLabel := func(t corev1.PodAffinityTerm) bool { return t.NamespaceSelector != nil }
	return slices.ContainsFunc(placement.RequiredAffinity(&pod.Spec), byLabel) ||
		slices.ContainsFunc(placement.RequiredAntiAffinity(&pod.Spec), byLabel)
}

// mayBelong reports whether a pod may be a workload's own. A Deployment's pods belong to its ReplicaSets.
func mayBelong(obj api.Object, pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	_, deployment := obj.(*appsv1.Deployment)
	if deployment {
		return owner != nil && owner.Kind == "ReplicaSet"
	}
	return owner != nil && owner.UID == obj.GetUID()
}

// lastLogs returns the last log lines of a pod's crashed containers.
func (l *look) lastLogs(ctx context.Context, pod *corev1.Pod) map[string]string {
	logs := map[string]string{}
	for _, c := range crashed(pod) {
		query := url.Values{"container": {c.name}, "tailLines": {strconv.Itoa(logTail)}}
		if c.previous {
			query.Set("previous", "true")
		}
		log, err := l.api.Logs(ctx, pod.Namespace, pod.Name, query)
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

// crashed returns the containers whose last log lines help.
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
