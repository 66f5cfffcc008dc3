package podgc

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSurplus(t *testing.T) {
	var list []*corev1.Pod
	for i := range 10 {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i), CreationTimestamp: metav1.Unix(int64(100-i), 0)}}
		p.Status.Phase = []corev1.PodPhase{corev1.PodSucceeded, corev1.PodRunning}[i%2]
		list = append(list, p)
	}
	if got := surplus(list, 3); len(got) != 2 || got[0].Name != "8" || got[1].Name != "6" {
		t.Errorf("%v", got)
	}
	if got := surplus(list, 5); got != nil {
		t.Errorf("%v", got)
	}
	if got := surplus(list, 0); got != nil {
		t.Errorf("no threshold: %v", got)
	}
}

func TestStranded(t *testing.T) {
	on := func(node string) *corev1.Pod { return &corev1.Pod{Spec: corev1.PodSpec{NodeName: node}} }
	got := stranded([]*corev1.Pod{on("a"), on("b"), on("b"), on("")}, func(n string) bool { return n == "a" })
	if len(got) != 1 || len(got["b"]) != 2 {
		t.Errorf("%v", got)
	}
	p := markFailed(on("b"), time.Unix(1000, 0))
	if p.Status.Phase != corev1.PodFailed || len(p.Status.Conditions) != 1 {
		t.Errorf("%+v", p.Status)
	}
}
