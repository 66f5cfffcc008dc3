package why

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/ctl/why/whytest"
)

// The explanation of a finalizer says who removes it. It does not suggest force, which does not remove finalizers.
func TestExplainFinalizers(t *testing.T) {
	held := func(name string, finalizers ...string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "default", Name: name, Finalizers: finalizers, DeletionTimestamp: new(whytest.Ago(time.Minute))}
	}
	ended := corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}}
	for _, x := range []struct {
		name string
		obj  api.Object
		why  string
		next string
	}{
		{"a stranger's", &corev1.ConfigMap{ObjectMeta: held("settings", "example.com/hold")},
			"configmap/settings waits for its finalizer example.com/hold: whatever works under the name example.com must take it away",
			`kubectl patch configmap settings --type=merge -p '{"metadata":{"finalizers":null}}'`},
		{"the garbage collector's", &appsv1.Deployment{ObjectMeta: held("web", metav1.FinalizerDeleteDependents)},
			"foregroundDeletion: the garbage collector takes it away when what the object owns is gone", "describe deployment web"},
		{"a job's, on a pod that has ended", &corev1.Pod{ObjectMeta: held("sum", batchv1.JobTrackingFinalizer), Spec: corev1.PodSpec{NodeName: "n"}, Status: ended},
			"the job controller takes it away when it has counted the pod", "minik8sd ctl get pod sum -w"},
		{"without a domain", &corev1.ConfigMap{ObjectMeta: held("settings", "hold")}, "whoever put it there", "kubectl patch"},
	} {
		v := explain(situation{kind: api.KindOf(x.obj), obj: x.obj, now: whytest.Noon, nodes: []*corev1.Node{whytest.GoodNode("n")}})
		why, next := strings.Join(v.Why, "\n"), strings.Join(v.Next, "\n")
		if v.Good || !strings.Contains(why, x.why) || !strings.Contains(next, x.next) || strings.Contains(next, x.obj.GetName()+" --force") {
			t.Errorf("%s: %s\n%s\n%s", x.name, v.Head, why, next)
		}
	}
	soon := held("settings", "example.com/hold")
	soon.DeletionTimestamp = new(whytest.Ago(-time.Minute))
	v := explain(situation{kind: api.ConfigMaps, obj: &corev1.ConfigMap{ObjectMeta: soon}, now: whytest.Noon})
	if next := strings.Join(v.Next, "\n"); strings.Contains(next, "patch") || !strings.Contains(strings.Join(v.Why, "\n"), "example.com/hold") {
		t.Errorf("one that has time yet:\n%s", next)
	}
	d := &appsv1.Deployment{ObjectMeta: held("web", metav1.FinalizerDeleteDependents)}
	v = explain(situation{kind: api.Deployments, obj: d, now: whytest.Noon, pods: []*corev1.Pod{whytest.PodOf("last", whytest.Newest, whytest.Departing)}})
	if next := strings.Join(v.Next, "\n"); !strings.Contains(next, "why pod last") || !strings.Contains(strings.Join(v.Why, "\n"), "still there: 1") {
		t.Errorf("one that waits for its pods:\n%s", next)
	}
	pod := &corev1.Pod{ObjectMeta: held("web"), Spec: corev1.PodSpec{NodeName: "n"}}
	v = explain(situation{kind: api.Pods, obj: pod, now: whytest.Noon, nodes: []*corev1.Node{whytest.GoodNode("n")}})
	if next := strings.Join(v.Next, "\n"); !strings.Contains(next, "delete pod web --force") {
		t.Errorf("a pod that only its kubelet holds:\n%s", next)
	}
}
