package ctl

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
)

// What a finalizer holds is said with who takes it away; force is no advice, for it does not.
func TestExplainFinalizers(t *testing.T) {
	held := func(name string, finalizers ...string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "default", Name: name, Finalizers: finalizers, DeletionTimestamp: new(ago(time.Minute))}
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
		v := explain(situation{kind: api.KindOf(x.obj), obj: x.obj, now: noon, nodes: []*corev1.Node{goodNode("n")}})
		why, next := strings.Join(v.why, "\n"), strings.Join(v.next, "\n")
		if v.good || !strings.Contains(why, x.why) || !strings.Contains(next, x.next) || strings.Contains(next, x.obj.GetName()+" --force") {
			t.Errorf("%s: %s\n%s\n%s", x.name, v.head, why, next)
		}
	}
	soon := held("settings", "example.com/hold")
	soon.DeletionTimestamp = new(ago(-time.Minute))
	v := explain(situation{kind: api.ConfigMaps, obj: &corev1.ConfigMap{ObjectMeta: soon}, now: noon})
	if next := strings.Join(v.next, "\n"); strings.Contains(next, "patch") || !strings.Contains(strings.Join(v.why, "\n"), "example.com/hold") {
		t.Errorf("one that has time yet:\n%s", next)
	}
	d := &appsv1.Deployment{ObjectMeta: held("web", metav1.FinalizerDeleteDependents)}
	v = explain(situation{kind: api.Deployments, obj: d, now: noon, pods: []*corev1.Pod{podOf("last", newest, departing)}})
	if next := strings.Join(v.next, "\n"); !strings.Contains(next, "why pod last") || !strings.Contains(strings.Join(v.why, "\n"), "still there: 1") {
		t.Errorf("one that waits for its pods:\n%s", next)
	}
	pod := &corev1.Pod{ObjectMeta: held("web"), Spec: corev1.PodSpec{NodeName: "n"}}
	v = explain(situation{kind: api.Pods, obj: pod, now: noon, nodes: []*corev1.Node{goodNode("n")}})
	if next := strings.Join(v.next, "\n"); !strings.Contains(next, "delete pod web --force") {
		t.Errorf("a pod that only its kubelet holds:\n%s", next)
	}
}

// The whole way for a namespace: its conditions, the object that holds it, and how to look at that.
func TestWhyNamespace(t *testing.T) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", DeletionTimestamp: new(metav1.NewTime(testTime.Add(-time.Minute)))}}
	ns.Status.Conditions = []corev1.NamespaceCondition{
		{Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionTrue, Message: "Some resources are remaining: configmaps. has 1 resource instances"},
		{Type: corev1.NamespaceFinalizersRemaining, Status: corev1.ConditionTrue, Message: "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"},
		{Type: corev1.NamespaceDeletionContentFailure, Status: corev1.ConditionFalse, Message: "All content successfully deleted"},
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "settings", Finalizers: []string{"example.com/hold"}, DeletionTimestamp: ns.DeletionTimestamp}}
	free := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "free"}}
	r := newFake(t, ns, cm, free).ctl("", "why", "ns", "team")
	for _, want := range []string{"NamespaceContentRemaining: Some resources are remaining: configmaps.", "NamespaceFinalizersRemaining: Some content",
		"configmap/settings waits for its finalizer example.com/hold", "minik8sd ctl describe configmap settings -n team", "kubectl patch configmap settings -n team"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("without %q:\n%s", want, r.out)
		}
	}
	if r.code != 0 || strings.Contains(r.out, "free") || strings.Contains(r.out, "ContentFailure") {
		t.Errorf("%d %s\n%s", r.code, r.text, r.out)
	}
}
