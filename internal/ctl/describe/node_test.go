package describe

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a node's pods request is counted as the scheduler counts it: with sidecars and overhead.
func TestRequestedOfANode(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	asks := func(cpu string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
	}
	pod := func(name string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Status: corev1.PodStatus{Phase: phase},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: asks("200m")}},
				InitContainers: []corev1.Container{{Name: "s", RestartPolicy: &always, Resources: asks("100m")}},
				Overhead:       corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m")}}}
	}
	node := &corev1.Node{Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}
	var out sheet
	writeNodePods(&out, node, []*corev1.Pod{pod("b", corev1.PodRunning), pod("a", corev1.PodSucceeded)})
	if got := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(got, "cpu 350m of 1 (35 %)") {
		t.Error(got)
	}
}
