package plan

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// ready returns a Ready node with its host name as a label.
func ready(name, cpu, memory string, pods int, labels map[string]string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	for k, v := range labels {
		n.Labels[k] = v
	}
	n.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
		corev1.ResourcePods: *resource.NewQuantity(int64(pods), resource.DecimalSI),
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

func fromYAML[T any](t testing.TB, text string) *T {
	t.Helper()
	v := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), v); err != nil {
		t.Fatal(err)
	}
	return v
}

// aPod returns a pod in the namespace default, with a spec in YAML.
func aPod(t testing.TB, name string, labels map[string]string, spec string) *corev1.Pod {
	t.Helper()
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), Labels: labels},
		Spec:       *fromYAML[corev1.PodSpec](t, spec),
	}
}

// asking returns a pod with requests.
func asking(name, cpu, memory string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}}}}},
	}
}

// assign chooses a node for a pod and counts the pod there.
func assign(t testing.TB, c *Cluster, obj *corev1.Pod) string {
	t.Helper()
	p := c.Pod(obj)
	node, why := c.Choose(p)
	if why != nil {
		t.Fatalf("%s: %s", obj.Name, why.Text)
	}
	c.Place(p, node)
	return node
}

// uniform returns a cluster of equal nodes n0, n1, ... in three zones.
func uniform(nodes int) *Cluster {
	c := New(1)
	for i := range nodes {
		c.SetNode(ready(fmt.Sprintf("n%d", i), "32", "64Gi", 110, map[string]string{corev1.LabelTopologyZone: fmt.Sprintf("z%d", i%3)}))
	}
	return c
}
