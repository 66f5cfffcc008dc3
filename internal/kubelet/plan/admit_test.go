package plan_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/kubelet/plan"
	"minik8s/internal/kubelet/plan/plantest"
)

func TestNodeMismatch(t *testing.T) {
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
		{"affinity", node, plantest.WantsDisk("ssd"), "", ""},
		{"affinity, another", node, plantest.WantsDisk("hdd"), "NodeAffinity", affinity},
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
		got := plan.NodeMismatch(plantest.Pod("web", x.change), x.node, "linux")
		if got == nil {
			got = &plan.Rejection{}
		}
		if got.Reason != x.reason || got.Message != x.message {
			t.Errorf("%s: %+v", x.name, *got)
		}
	}
}
