// Package whytest makes pods and nodes for tests of explanations. Only tests import it.
package whytest

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Noon is the present time in the tests.
var Noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// Ago returns a time before Noon.
func Ago(d time.Duration) metav1.Time { return metav1.NewTime(Noon.Add(-d)) }

// Newest is the hash of a workload's newest template.
const Newest = "7"

// PodOf returns a pod whose template has the given hash, ready on the node n; change may modify it.
func PodOf(name, hash string, change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": "web", "hash": hash}}}
	pod.Spec = corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "web", Image: "web:1"}}}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	if change != nil {
		change(pod)
	}
	return pod
}

// Waiting makes the container wait with a reason.
func Waiting(reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase, p.Status.Conditions = corev1.PodPending, nil
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
	}
}

// Crashing makes the container crash repeatedly.
func Crashing(p *corev1.Pod) {
	Waiting("CrashLoopBackOff")(p)
	p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 3, FinishedAt: Ago(time.Minute)}
}

// Unscheduled makes the pod one without a node.
func Unscheduled(p *corev1.Pod) {
	p.Spec.NodeName, p.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
}

// Departing makes the pod one that is being deleted.
func Departing(p *corev1.Pod) { p.DeletionTimestamp = new(Ago(time.Second)) }

// GaveUp makes the pod one that was evicted.
func GaveUp(p *corev1.Pod) {
	p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"}
}

// GoodNode returns a node that is ready.
func GoodNode(name string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return node
}
