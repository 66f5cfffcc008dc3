package ctl

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/ctl/exit"
)

func templateWith(image string, labels map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: image}}}}
}

func named(name, controller string, uid types.UID) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}
	if controller != "" {
		m.OwnerReferences = []metav1.OwnerReference{{Kind: controller, UID: uid, Controller: new(true)}}
	}
	return m
}

// history is a deployment and a daemon set with three templates each.
func history(t *testing.T) *fakeAPI {
	d := &appsv1.Deployment{ObjectMeta: named("web", "", ""), Spec: appsv1.DeploymentSpec{Replicas: new(int32(2)), Template: templateWith("x:3", nil)}}
	ds := &appsv1.DaemonSet{ObjectMeta: named("agent", "", ""), Spec: appsv1.DaemonSetSpec{Template: templateWith("x:3", nil)}}
	f := newFake(t, d, ds)
	for i := range 3 {
		image, n := fmt.Sprint("x:", i+1), fmt.Sprint(i+1)
		rs := &appsv1.ReplicaSet{ObjectMeta: named("web-"+n, "Deployment", "web"), Spec: appsv1.ReplicaSetSpec{
			Template: templateWith(image, map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: n})}}
		rs.Annotations = map[string]string{"deployment.kubernetes.io/revision": n, "kubernetes.io/change-cause": "because " + n}
		h := &appsv1.ControllerRevision{ObjectMeta: named("agent-"+n, "DaemonSet", "agent"), Revision: int64(i + 1),
			Data: runtime.RawExtension{Raw: []byte(`{"spec":{"template":{"$patch":"replace","spec":{"containers":[{"name":"web","image":"` + image + `"}]}}}}`)}}
		f.put(pathOf(rs), rs)
		f.put(pathOf(h), h)
	}
	return f
}

func TestRolloutHistoryAndUndo(t *testing.T) {
	for _, kind := range []string{"deployment/web", "ds/agent"} {
		f := history(t)
		image := func() string {
			switch o := f.get(map[string]string{"deployment/web": "/apis/apps/v1/namespaces/default/deployments/web",
				"ds/agent": "/apis/apps/v1/namespaces/default/daemonsets/agent"}[kind]).(type) {
			case *appsv1.Deployment:
				return o.Spec.Template.Spec.Containers[0].Image + fmt.Sprint(o.Spec.Template.Labels)
			case *appsv1.DaemonSet:
				return o.Spec.Template.Spec.Containers[0].Image + fmt.Sprint(o.Spec.Template.Labels)
			}
			return ""
		}
		got := f.ctl("", "rollout", "history", kind)
		for _, want := range []string{"REVISION", "x:1", "x:2", "x:3"} {
			if !strings.Contains(got.out, want) || got.code != 0 {
				t.Errorf("%s: history without %s: %+v", kind, want, got)
			}
		}
		if got := f.ctl("", "rollout", "history", kind, "--revision", "2"); !strings.Contains(got.out, "image: x:2") || strings.Contains(got.out, "hash") {
			t.Errorf("%s: revision 2: %+v", kind, got)
		}
		if got := f.ctl("", "rollout", "undo", kind); got.code != 0 || image() != "x:2map[]" {
			t.Errorf("%s: undone: %+v, now %s", kind, got, image())
		}
		if got := f.ctl("", "rollout", "undo", kind, "--to-revision=1"); got.code != 0 || image() != "x:1map[]" {
			t.Errorf("%s: undone to 1: %+v, now %s", kind, got, image())
		}
		if got := f.ctl("", "rollout", "undo", kind, "--to-revision=9"); got.code != exit.NotFound || !strings.Contains(got.text, "no revision 9") {
			t.Errorf("%s: %+v", kind, got)
		}
		if got := f.ctl("", "rollout", "restart", kind); got.code != 0 {
			t.Errorf("%s: %+v", kind, got)
		}
	}
	f := history(t)
	if got := f.ctl("", "rollout", "undo", "pod/web"); got.code == 0 {
		t.Errorf("a pod: %+v", got)
	}
}

func TestRolloutStatus(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*appsv1.Deployment)
		code   int
		says   string
	}{
		"done":     {func(d *appsv1.Deployment) {}, 0, "is rolled out: 2 of 2 pods are new, 2 available"},
		"not seen": {func(d *appsv1.Deployment) { d.Generation = 2 }, exit.Failed, "yet to see"},
		"old ones": {func(d *appsv1.Deployment) { d.Status.Replicas = 3 }, exit.Failed, "1 old ones are left"},
		"not up":   {func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 1 }, exit.Failed, "2 of 2 pods are new, 1 available"},
		"paused":   {func(d *appsv1.Deployment) { d.Spec.Paused = true }, exit.Failed, "rollout resume deployment web"},
		"stuck": {func(d *appsv1.Deployment) {
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"}}
		}, exit.Failed, "ctl why deployment web"},
	} {
		d := &appsv1.Deployment{ObjectMeta: named("web", "", ""), Spec: appsv1.DeploymentSpec{Replicas: new(int32(2))},
			Status: appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2}}
		test.change(d)
		if got := newFake(t, d).ctl("", "rollout", "status", "deployment", "web", "--no-wait"); got.code != test.code || !strings.Contains(got.out+got.text, test.says) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestScale(t *testing.T) {
	f := history(t)
	if got := f.ctl("", "scale", "deployment/web", "--replicas", "7"); got.code != 0 || !strings.Contains(got.out, "web scaled to 7") {
		t.Errorf("%+v", got)
	}
	if d := f.get("/apis/apps/v1/namespaces/default/deployments/web").(*appsv1.Deployment); *d.Spec.Replicas != 7 {
		t.Errorf("%d replicas", *d.Spec.Replicas)
	}
	for args, want := range map[string]string{
		"scale deployment/web": "how many", "scale ds/agent --replicas 2": "is for deployments and replicasets", "scale deployment --replicas 2": "which deployment",
	} {
		if got := f.ctl("", strings.Fields(args)...); got.code != exit.Usage || !strings.Contains(got.text, want) {
			t.Errorf("%s: %+v", args, got)
		}
	}
}
