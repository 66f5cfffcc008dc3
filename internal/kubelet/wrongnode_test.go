package kubelet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/kubelet/plan/plantest"
)

func TestPodThatNamesTheWrongNode(t *testing.T) {
	b := newBed(t)
	b.cfg.Labels = map[string]string{"disk": "ssd"}
	b.start()
	b.create(plantest.Pod("right", plantest.WantsDisk("ssd")))
	b.api.await(t, "right", "running", running)
	b.create(plantest.Pod("wrong", plantest.WantsDisk("hdd")))
	p := b.api.await(t, "wrong", "failed", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
	if p.Status.Reason != "NodeAffinity" ||
		p.Status.Message != "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector" {
		t.Errorf("%s", statusText(p))
	}
	b.api.awaitEvent(t, "wrong", "NodeAffinity")

	// Once it runs, a pod stays though the node is not what it was: required during scheduling, ignored since.
	b.stop()
	b.relabel("disk", "hdd")
	b.cfg.Labels = nil
	b.rt.Restart()
	b.start()
	if p = b.api.await(t, "right", "there", func(*corev1.Pod) bool { return true }); !running(p) {
		t.Errorf("%s", statusText(p))
	}
	b.create(plantest.Pod("late", plantest.WantsDisk("hdd")))
	b.api.await(t, "late", "running", running)
	b.delete("wrong")
	b.api.await(t, "wrong", "gone", goneNow)
}

func (b *bed) relabel(key, value string) {
	b.t.Helper()
	node, err := client.Get[*corev1.Node](b.t.Context(), b.api, client.Key{Kind: api.Nodes, Name: "node1"})
	if err != nil {
		b.t.Fatal(err)
	}
	node = node.DeepCopy()
	node.Labels[key] = value
	if _, err := b.api.Update(b.t.Context(), node, client.WriteOptions{}); err != nil {
		b.t.Fatal(err)
	}
}
