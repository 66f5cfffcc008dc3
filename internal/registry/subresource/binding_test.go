package subresource

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func binding(node string, uid types.UID, annotation ...string) *corev1.Binding {
	b := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{UID: uid}, Target: corev1.ObjectReference{Name: node}}
	if len(annotation) > 0 {
		b.Annotations = map[string]string{annotation[0]: annotation[1]}
	}
	return b
}

func TestBound(t *testing.T) {
	old := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u"}, Status: corev1.PodStatus{
		Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable"}},
	}}
	now := time.Date(2025, 5, 1, 12, 0, 0, 7, time.UTC)
	obj, err := bound(old, binding("n", "u", "a", "b"), now)
	if err != nil {
		t.Fatal(err)
	}
	pod := obj.(*corev1.Pod)
	c := pod.Status.Conditions
	if pod.Spec.NodeName != "n" || pod.Annotations["a"] != "b" || len(c) != 1 || c[0].Status != corev1.ConditionTrue || c[0].Reason != "" {
		t.Errorf("%+v", pod)
	}
	if old.Spec.NodeName != "" || old.Status.Conditions[0].Status != corev1.ConditionFalse {
		t.Error("the old pod was changed")
	}
	if _, err := bound(pod, binding("other", ""), now); !apierrors.IsConflict(err) {
		t.Errorf("bound twice: %v", err)
	}
	if _, err := bound(old, binding("n", "other"), now); !apierrors.IsConflict(err) {
		t.Errorf("another uid: %v", err)
	}
	going := old.DeepCopy()
	going.DeletionTimestamp = &metav1.Time{Time: now}
	if _, err := bound(going, binding("n", ""), now); !apierrors.IsConflict(err) {
		t.Errorf("going: %v", err)
	}
	if _, err := bound(old, binding("", ""), now); !apierrors.IsInvalid(err) {
		t.Errorf("no node: %v", err)
	}
}
