package kubelet

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/kubelet/plan/plantest"
)

var nodeKey = client.Key{Kind: api.Nodes, Name: "node1"}

// advertise writes a resource into the Node's capacity, as a person does who has two licences of something.
func advertise(t *testing.T, b *bed, name corev1.ResourceName, amount string) {
	t.Helper()
	for {
		node, err := client.Get[*corev1.Node](t.Context(), b.api, nodeKey)
		if err != nil {
			t.Fatal(err)
		}
		node = node.DeepCopy()
		node.Status.Capacity[name] = resource.MustParse(amount)
		if _, err = b.api.Update(t.Context(), node, client.WriteOptions{Subresource: "status"}); err == nil {
			return
		}
	}
}

func asking(name corev1.ResourceName, amount string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		list := corev1.ResourceList{name: resource.MustParse(amount)}
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: list, Requests: list}
	}
}

// A resource that others advertise stays, is offered to pods, and is counted; one that nobody lists is not
// the kubelet's to refuse.
func TestExtendedResources(t *testing.T) {
	b := newBed(t)
	b.cfg.HeartbeatInterval = 10 * time.Millisecond
	b.start()
	advertise(t, b, "x.io/foo", "2")
	offers := func(node *corev1.Node) bool {
		have, offered := node.Status.Capacity["x.io/foo"], node.Status.Allocatable["x.io/foo"]
		return have.Value() == 2 && offered.Value() == 2
	}
	b.api.awaitNode(t, "offering what was advertised", offers)
	for _, x := range []struct {
		name   string
		ask    func(*corev1.Pod)
		reason string
	}{
		{name: "first", ask: asking("x.io/foo", "1")},
		{name: "second", ask: asking("x.io/foo", "1")},
		{name: "third", ask: asking("x.io/foo", "1"), reason: "OutOfx.io/foo"},
		{name: "unlisted", ask: asking("y.io/bar", "1")},
		{name: "no-device", ask: asking("kubernetes.io/bar", "1"), reason: "OutOfkubernetes.io/bar"},
	} {
		b.create(plantest.Pod(x.name, x.ask))
		p := b.api.await(t, x.name, "running or refused", func(p *corev1.Pod) bool {
			return running(p) || p != nil && p.Status.Phase == corev1.PodFailed
		})
		if p.Status.Reason != x.reason {
			t.Errorf("%s: %s", x.name, statusText(p))
		}
	}
	b.restart()
	if node := b.api.awaitNode(t, "ready", func(n *corev1.Node) bool { return nodeReady(n) }); !offers(node) {
		t.Errorf("after a restart: %v", node.Status.Capacity)
	}
}

// What the kubelet knows itself is as it says, and a resource that is not in the capacity any more is offered
// to nobody.
func TestCapacityIsTheMachines(t *testing.T) {
	b := newBed(t)
	b.cfg.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}
	made := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node1"}, Status: corev1.NodeStatus{
		Capacity:    corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100"), "x.io/foo": resource.MustParse("1")},
		Allocatable: corev1.ResourceList{"x.io/gone": resource.MustParse("1")}}}
	if _, err := b.api.Create(t.Context(), made, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.start()
	node := b.api.awaitNode(t, "ready", func(n *corev1.Node) bool { return nodeReady(n) })
	_, gone := node.Status.Allocatable["x.io/gone"]
	if foo := node.Status.Allocatable["x.io/foo"]; node.Status.Allocatable.Cpu().Value() != 3 || foo.Value() != 1 || gone {
		t.Errorf("%v of %v", node.Status.Allocatable, node.Status.Capacity)
	}
}
