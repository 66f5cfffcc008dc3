package kubelet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api/podspec"
	"minik8s/internal/client"
	"minik8s/internal/kubelet/plan/plantest"
)

// setStatus changes a pod's status as another writer than the kubelet.
func (b *bed) setStatus(name string, change func(*corev1.PodStatus)) {
	b.t.Helper()
	for {
		obj, err := b.api.Get(b.t.Context(), podKey(name))
		if err != nil {
			b.t.Fatal(err)
		}
		pod := obj.(*corev1.Pod).DeepCopy()
		change(&pod.Status)
		_, err = b.api.Update(b.t.Context(), pod, client.WriteOptions{Subresource: "status"})
		if err == nil {
			return
		}
		if !apierrors.IsConflict(err) {
			b.t.Fatal(err)
		}
	}
}

// lost makes the changes that package nodelifecycle makes to the pods of a silent node.
func lost(st *corev1.PodStatus) {
	c := podspec.Condition(st.Conditions, corev1.PodReady)
	c.Status, c.Reason, c.Message = corev1.ConditionFalse, "NodeNotReady", "Node is not ready"
}

// The pods of a silent node are marked as not ready. When the node is back, the kubelet marks them ready again: both
// if only the connection was lost, and after a restart.
func TestReadyAgainAfterSilence(t *testing.T) {
	b := newBed(t)
	b.start()
	b.create(plantest.Pod("web"))
	b.api.await(t, "web", "running", running)
	b.setStatus("web", lost)
	b.api.await(t, "web", "ready again", running)

	b.stop()
	b.setStatus("web", lost)
	b.rt.Restart()
	b.start()
	p := b.api.await(t, "web", "ready after a restart", running)
	if c := podspec.Condition(p.Status.Conditions, corev1.PodReady); c.Reason != "" || c.Message != "" {
		t.Errorf("%+v", c)
	}
	b.sound()
}

// A pod is ready when its gates say so too; their conditions are others' to write.
func TestReadinessGate(t *testing.T) {
	b := newBed(t)
	b.start()
	b.create(plantest.Pod("web", func(p *corev1.Pod) {
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/balanced"}}
	}))
	b.api.await(t, "web", "held by its gate", func(p *corev1.Pod) bool {
		c := podspec.Condition(p.Status.Conditions, corev1.PodReady)
		return p.Status.Phase == corev1.PodRunning && c != nil && c.Reason == "ReadinessGatesNotReady"
	})
	b.setStatus("web", func(st *corev1.PodStatus) {
		st.Conditions = append(st.Conditions, corev1.PodCondition{Type: "example.com/balanced", Status: corev1.ConditionTrue})
	})
	p := b.api.await(t, "web", "ready", running)
	if c := podspec.Condition(p.Status.Conditions, "example.com/balanced"); c == nil || c.Status != corev1.ConditionTrue {
		t.Errorf("the gate's condition: %+v", c)
	}
}
