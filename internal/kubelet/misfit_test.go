package kubelet

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// wanting asks for a node whose disk is of a kind.
func wanting(disk string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: []string{disk}}},
			}}}}}
	}
}

func TestMisfit(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node1", Labels: map[string]string{"disk": "ssd", corev1.LabelOSStable: "linux"}}}
	node.Spec.Taints = []corev1.Taint{{Key: "later", Effect: corev1.TaintEffectNoSchedule}}
	dying := node.DeepCopy()
	dying.Spec.Taints = append(dying.Spec.Taints, corev1.Taint{Key: "dying", Effect: corev1.TaintEffectNoExecute})
	const affinity = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
	for _, x := range []struct {
		name            string
		node            *corev1.Node
		change          func(*corev1.Pod)
		reason, message string
	}{
		{"asks for nothing, past a NoSchedule taint", node, func(*corev1.Pod) {}, "", ""},
		{"node selector", node, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} }, "", ""},
		{"node selector, another", node, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "hdd"} }, "NodeAffinity", affinity},
		{"affinity", node, wanting("ssd"), "", ""},
		{"affinity, another", node, wanting("hdd"), "NodeAffinity", affinity},
		{"a NoExecute taint", dying, func(*corev1.Pod) {}, "TaintToleration",
			"Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"},
		{"a tolerated NoExecute taint", dying, func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "dying", Operator: corev1.TolerationOpExists}}
		}, "", ""},
		{"linux", node, func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Linux} }, "", ""},
		{"windows", node, func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} }, "PodOSNotSupported",
			"Failed to admit pod as the OS field doesn't match node OS"},
		{"labelled for windows", node, func(p *corev1.Pod) { p.Labels = map[string]string{corev1.LabelOSStable: "windows"} },
			"PodOSSelectorNodeLabelDoesNotMatch", "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"},
	} {
		got := misfit(testPod("web", x.change), x.node, "linux")
		if got == nil {
			got = &verdict{}
		}
		if got.reason != x.reason || got.message != x.message {
			t.Errorf("%s: %+v", x.name, *got)
		}
	}
}

func TestPodThatNamesTheWrongNode(t *testing.T) {
	b := newBed(t)
	b.cfg.Labels = map[string]string{"disk": "ssd"}
	b.start()
	b.create(testPod("right", wanting("ssd")))
	b.api.await(t, "right", "running", running)
	b.create(testPod("wrong", wanting("hdd")))
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
	b.create(testPod("late", wanting("hdd")))
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

// A label that the kubelet has not heard of yet is no reason to refuse: the Node is read anew.
func TestMisfitByAnOldNode(t *testing.T) {
	b := newBed(t)
	b.start()
	b.relabel("disk", "ssd")
	old := b.k.node.known().DeepCopy()
	delete(old.Labels, "disk")
	b.k.node.remember(t.Context(), old)
	no, err := b.k.node.misfit(t.Context(), testPod("web", wanting("ssd")))
	if no != nil || err != nil {
		t.Errorf("%+v, %v", no, err)
	}
	b.api.mu.Lock()
	b.api.fail = func(string, client.Key) error { return errors.New("nobody home") }
	b.api.mu.Unlock()
	if no, err = b.k.node.misfit(t.Context(), testPod("web", wanting("hdd"))); no != nil || err == nil {
		t.Errorf("with no API: %+v, %v", no, err)
	}
}
