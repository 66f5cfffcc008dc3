package metrics

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"minik8s/internal/aggregation"
	"minik8s/internal/api"
	"minik8s/internal/client"
)

// API answers for the group metrics.k8s.io.
type API struct {
	Collector *Collector
	// Client reads nodes and pods.
	Client client.Interface
}

var resources = []metav1.APIResource{
	{Name: "nodes", Kind: "NodeMetrics", Verbs: metav1.Verbs{"get", "list"}},
	{Name: "pods", Kind: "PodMetrics", Namespaced: true, Verbs: metav1.Verbs{"get", "list"}},
}

// Group is the group, for the API server.
func (a *API) Group() aggregation.Group {
	return aggregation.Group{Group: v1beta1.SchemeGroupVersion.Group, Version: v1beta1.SchemeGroupVersion.Version,
		Resources: func() []metav1.APIResource { return resources }, Serve: a.serve}
}

func (a *API) serve(w http.ResponseWriter, r *aggregation.Request) error {
	which, where, err := r.Selectors()
	if err != nil {
		return err
	}
	if r.Name != "" {
		which, where = labels.Everything(), fields.OneTermEqualSelector("metadata.name", r.Name)
	}
	var items []runtime.Object
	if r.Resource == "nodes" {
		items, err = a.nodes(r.Context(), which, where)
	} else {
		items, err = a.pods(r.Context(), r.Namespace, which, where)
	}
	if err != nil {
		return err
	}
	table := func() *metav1.Table { return tableOf(items) }
	if r.Name != "" {
		if len(items) == 0 {
			return apierrors.NewNotFound(v1beta1.Resource(r.Resource), r.Name)
		}
		return r.Send(w, items[0], table)
	}
	return r.Send(w, listOf(r.Resource, items), table)
}

func listOf(resource string, items []runtime.Object) runtime.Object {
	version := v1beta1.SchemeGroupVersion.String()
	if resource == "nodes" {
		list := &v1beta1.NodeMetricsList{TypeMeta: metav1.TypeMeta{Kind: "NodeMetricsList", APIVersion: version}, Items: []v1beta1.NodeMetrics{}}
		for _, x := range items {
			list.Items = append(list.Items, *x.(*v1beta1.NodeMetrics))
		}
		return list
	}
	list := &v1beta1.PodMetricsList{TypeMeta: metav1.TypeMeta{Kind: "PodMetricsList", APIVersion: version}, Items: []v1beta1.PodMetrics{}}
	for _, x := range items {
		list.Items = append(list.Items, *x.(*v1beta1.PodMetrics))
	}
	return list
}

// nodes are those that are selected and answer, in the order of their names.
func (a *API) nodes(ctx context.Context, which labels.Selector, where fields.Selector) ([]runtime.Object, error) {
	list, err := a.Client.List(ctx, api.Nodes, client.ListOptions{Labels: which})
	if err != nil {
		return nil, err
	}
	var names []string
	var nodes []*corev1.Node
	for _, obj := range list.Items {
		n := obj.(*corev1.Node)
		if where.Matches(fields.Set{"metadata.name": n.Name}) {
			names, nodes = append(names, n.Name), append(nodes, n)
		}
	}
	used, err := a.Collector.Nodes(ctx, names)
	if err != nil {
		return nil, err
	}
	var out []runtime.Object
	for _, n := range nodes {
		u := used[n.Name].Usage
		if u.Time.IsZero() {
			continue
		}
		out = append(out, &v1beta1.NodeMetrics{TypeMeta: typeOf("NodeMetrics"), ObjectMeta: metaOf(n), Timestamp: metav1.NewTime(u.Time),
			Window: metav1.Duration{Duration: rounded(u.Window)}, Usage: quantities(u)})
	}
	return out, nil
}

// pods are those that are selected and run, in the order of their names.
func (a *API) pods(ctx context.Context, namespace string, which labels.Selector, where fields.Selector) ([]runtime.Object, error) {
	list, err := a.Client.List(ctx, api.Pods, client.ListOptions{Namespace: namespace, Labels: which})
	if err != nil {
		return nil, err
	}
	var pods []*corev1.Pod
	var names []string
	on := map[string]bool{}
	for _, obj := range list.Items {
		p := obj.(*corev1.Pod)
		if p.Status.Phase != corev1.PodRunning ||
			!where.Matches(fields.Set{"metadata.name": p.Name, "metadata.namespace": p.Namespace, "spec.nodeName": p.Spec.NodeName}) {
			continue
		}
		pods = append(pods, p)
		if !on[p.Spec.NodeName] {
			on[p.Spec.NodeName] = true
			names = append(names, p.Spec.NodeName)
		}
	}
	used, err := a.Collector.Nodes(ctx, names)
	if err != nil {
		return nil, err
	}
	var out []runtime.Object
	for _, p := range pods {
		if m := podMetrics(p, used[p.Spec.NodeName].Containers); m != nil {
			out = append(out, m)
		}
	}
	return out, nil
}

// podMetrics is nil for a pod without running containers, or if nothing is known of one of them: a sum without it would
// look like a pod that has little to do.
func podMetrics(p *corev1.Pod, used map[string]Usage) *v1beta1.PodMetrics {
	m := &v1beta1.PodMetrics{TypeMeta: typeOf("PodMetrics"), ObjectMeta: metaOf(p), Containers: []v1beta1.ContainerMetrics{}}
	for _, c := range slices.Concat(p.Status.ContainerStatuses, p.Status.InitContainerStatuses) {
		if c.State.Running == nil {
			continue
		}
		_, id, _ := strings.Cut(c.ContainerID, "://")
		u, ok := used[id]
		if !ok {
			return nil
		}
		if m.Timestamp.IsZero() || u.Time.Before(m.Timestamp.Time) {
			m.Timestamp = metav1.NewTime(u.Time)
		}
		m.Window.Duration = max(m.Window.Duration, rounded(u.Window))
		m.Containers = append(m.Containers, v1beta1.ContainerMetrics{Name: c.Name, Usage: quantities(u)})
	}
	if len(m.Containers) == 0 {
		return nil
	}
	return m
}

func rounded(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

func typeOf(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{Kind: kind, APIVersion: v1beta1.SchemeGroupVersion.String()}
}

// metaOf is the metadata that metrics have: name, namespace and labels of what they are of, and now.
func metaOf(obj metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: obj.GetName(), Namespace: obj.GetNamespace(), Labels: obj.GetLabels(), CreationTimestamp: metav1.Now()}
}

func quantities(u Usage) corev1.ResourceList {
	memory := resource.NewQuantity(int64(u.Memory), resource.BinarySI)
	memory.RoundUp(resource.Scale(0))
	return corev1.ResourceList{corev1.ResourceCPU: *resource.NewScaledQuantity(int64(u.CPU*1e9), resource.Nano), corev1.ResourceMemory: *memory}
}

// tableOf is the table that "kubectl get podmetrics" shows.
func tableOf(items []runtime.Object) *metav1.Table {
	t := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name"}, {Name: "CPU", Type: "string"},
		{Name: "Memory", Type: "string"}, {Name: "Window", Type: "string"}}}
	for _, x := range items {
		var name string
		var cpu, memory resource.Quantity
		var window time.Duration
		switch m := x.(type) {
		case *v1beta1.NodeMetrics:
			name, cpu, memory, window = m.Name, *m.Usage.Cpu(), *m.Usage.Memory(), m.Window.Duration
		case *v1beta1.PodMetrics:
			name, window = m.Name, m.Window.Duration
			for _, c := range m.Containers {
				cpu.Add(*c.Usage.Cpu())
				memory.Add(*c.Usage.Memory())
			}
		}
		t.Rows = append(t.Rows, metav1.TableRow{Cells: []any{name, cpu.String(), memory.String(), window.String()}, Object: runtime.RawExtension{Object: x}})
	}
	return t
}
