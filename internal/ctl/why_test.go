package ctl

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/api/placement"
	"minik8s/internal/ctl/why/whytest"
)

// All steps for a namespace: its conditions, the object that holds it, and how to look at that object.
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

// A ReplicationController is a workload like a ReplicaSet: it is scaled, and explained by its conditions and pods.
func TestReplicationControllers(t *testing.T) {
	rc := &corev1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "rc"},
		Spec: corev1.ReplicationControllerSpec{Replicas: new(int32(2)), Selector: map[string]string{"app": "web"}},
		Status: corev1.ReplicationControllerStatus{Replicas: 1, Conditions: []corev1.ReplicationControllerCondition{{
			Type: corev1.ReplicationControllerReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "there is no room"}}}}
	crashed := whytest.PodOf("web-1", "", whytest.Crashing)
	crashed.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ReplicationController", Name: "web", UID: "rc", Controller: new(true)}}
	f := newFake(t, rc, crashed, whytest.GoodNode("n"))
	got := f.ctl("", "why", "rc", "web")
	for _, want := range []string{"replicationcontroller/web has 0 of 2 pods ready", "FailedCreate: there is no room", "exit code 3"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("it does not say %q:\n%s", want, got.out)
		}
	}
	if got := f.ctl("", "scale", "rc/web", "--replicas", "5"); got.code != 0 || *f.get("/api/v1/namespaces/default/replicationcontrollers/web").(*corev1.ReplicationController).Spec.Replicas != 5 {
		t.Errorf("%+v", got)
	}
}

// All steps for a deployment whose new pod cannot mount a volume, or crashes: only the pod's events and log tell why.
func TestWhyDeployment(t *testing.T) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "d"}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	d.Spec.Template.Labels = map[string]string{"app": "web"}
	d.Status = appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 1, ReadyReplicas: 1}
	set := func(name, hash, image string) *appsv1.ReplicaSet {
		rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name),
			Labels:          map[string]string{"app": "web", appsv1.DefaultDeploymentUniqueLabelKey: hash},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Deployment", Name: "web", UID: "d", Controller: new(true)}}}}
		rs.Spec.Template.Labels = rs.Labels
		rs.Spec.Template.Spec.Hostname = image
		return rs
	}
	pod := func(name, hash string, change func(*corev1.Pod)) *corev1.Pod {
		p := whytest.PodOf(name, hash, change)
		p.UID = types.UID(name)
		p.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-" + hash, UID: types.UID("web-" + hash), Controller: new(true)}}
		return p
	}
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "e"}, Type: corev1.EventTypeWarning, Reason: "FailedMount",
		Message: `MountVolume.SetUp failed for volume "settings": configmap "settings" not found`, LastTimestamp: metav1.NewTime(testTime),
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "fresh", UID: "fresh"}}
	for _, x := range []struct {
		name   string
		change func(*corev1.Pod)
		want   string
	}{
		{"a volume", whytest.Waiting("ContainerCreating"), `configmap "settings" not found`},
		{"a crash", whytest.Crashing, "no such table"},
	} {
		stranger := pod("stranger", whytest.Newest, whytest.Unscheduled)
		stranger.OwnerReferences = nil
		f := newFake(t, d, set("web-6", "6", "other"), set("web-7", whytest.Newest, ""), pod("old", "6", nil), pod("fresh", whytest.Newest, x.change), stranger, event, whytest.GoodNode("n"))
		f.logs["fresh?container=web&previous=true&tailLines=10"] = "no such table\n"
		r := f.ctl("", "why", "deployment/web")
		if r.code != 0 || !strings.Contains(r.out, "is rolling out: 1 of 1 pods are new, 0 of them ready") || !strings.Contains(r.out, x.want) || strings.Contains(r.out, "stranger") {
			t.Errorf("%s: %d %s\n%s", x.name, r.code, r.text, r.out)
		}
	}
}

// All steps for a pod whose terms select namespaces by labels: only then are the namespaces requested.
func TestWhyNamespaceSelector(t *testing.T) {
	term := corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}
	run := func() (*fakeAPI, ran) {
		pod := whytest.PodOf("web", "", whytest.Unscheduled)
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes are available"}}
		refusals := placement.Refusals{}
		refusals.Add(placement.PodAntiAffinity, "n", false)
		refusals.Publish(pod)
		objects := []api.Object{pod, whytest.GoodNode("n")}
		for _, name := range []string{"blue", "red"} {
			other := whytest.PodOf("web", "", nil)
			other.Namespace = name
			objects = append(objects, other, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": name}}})
		}
		f := newFake(t, objects...)
		return f, f.ctl("", "why", "pod", "web")
	}
	asked := func(f *fakeAPI) bool {
		return slices.ContainsFunc(f.calls, func(call string) bool { return call == "GET /api/v1/namespaces" })
	}
	if f, _ := run(); asked(f) {
		t.Error("namespaces were asked for in vain")
	}
	term.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "blue"}}
	if f, r := run(); !asked(f) || !strings.Contains(r.out, "in the way: blue/web on n\n") || strings.Contains(r.out, "red/web") {
		t.Errorf("%v\n%s", f.calls, r.out)
	}
}

// All steps for a paused deployment: the suggested command names it, though it has no pods of its new template.
func TestWhyPaused(t *testing.T) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "d"}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	d.Spec.Paused = true
	r := newFake(t, d, whytest.GoodNode("n")).ctl("", "why", "deployment", "web")
	if r.code != 0 || !strings.Contains(r.out, "is paused; a changed template is not rolled out") || !strings.Contains(r.out, "minik8sd ctl rollout resume deployment web") {
		t.Errorf("%d %s\n%s", r.code, r.text, r.out)
	}
}
