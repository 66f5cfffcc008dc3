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
)

const newest = "7"

// podOf is a pod of the template with a hash, ready on the node n; change makes it something else.
func podOf(name, hash string, change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": "web", "hash": hash}}}
	pod.Spec = corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "web", Image: "web:1"}}}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	if change != nil {
		change(pod)
	}
	return pod
}

// waiting is a change: the container cannot start for a reason.
func waiting(reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase, p.Status.Conditions = corev1.PodPending, nil
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
	}
}

func crashing(p *corev1.Pod) {
	waiting("CrashLoopBackOff")(p)
	p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 3, FinishedAt: ago(time.Minute)}
}

func unscheduled(p *corev1.Pod) {
	p.Spec.NodeName, p.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
}

func departing(p *corev1.Pod) { p.DeletionTimestamp = new(ago(time.Second)) }

func gaveUp(p *corev1.Pod) {
	p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"}
}

func goodNode(name string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return node
}

func TestExplainDeployment(t *testing.T) {
	stuckRollout := appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1, UnavailableReplicas: 1}
	late := stuckRollout
	late.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded",
		Message: `ReplicaSet "web-7" has timed out progressing.`}}
	whole := appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
	short := whole
	short.AvailableReplicas, short.UnavailableReplicas = 0, 1
	old, fresh := podOf("old", "6", nil), podOf("fresh", newest, nil)
	noImage := podOf("fresh", newest, waiting("ErrImagePull"))
	for _, x := range []struct {
		name   string
		change func(*appsv1.Deployment)
		st     appsv1.DeploymentStatus
		pods   []*corev1.Pod
		good   bool
		head   string
		why    string
	}{
		{"well", nil, whole, []*corev1.Pod{fresh}, true, "has 1 of 1 pods ready", ""},
		{"stuck beside an old ready pod", nil, stuckRollout, []*corev1.Pod{old, noImage}, false, "is rolling out: 1 of 1 pods are new, 0 of them ready", "the image web:1 of container web cannot be had"},
		{"stuck, by its numbers alone", nil, stuckRollout, nil, false, "is rolling out: 1 of 1 pods are new, 0 of them ready", "pods of an older template that are still there: 1"},
		{"stuck for too long", nil, late, []*corev1.Pod{old, noImage}, false, "is rolling out", `ProgressDeadlineExceeded: ReplicaSet "web-7" has timed out progressing.`},
		{"the new one is ready, the old one still there", nil, stuckRollout, []*corev1.Pod{old, fresh}, false, "is rolling out: 1 of 1 pods are new, 1 of them ready", "pods of an older template that are still there: 1"},
		{"the old one is going", nil, whole, []*corev1.Pod{podOf("old", "6", departing), fresh}, true, "has 1 of 1 pods ready", ""},
		{"ready, not yet available", func(d *appsv1.Deployment) { d.Spec.MinReadySeconds = 30 }, short, []*corev1.Pod{fresh}, false, "has 1 of 1 pods ready", "minReadySeconds (30)"},
		{"stuck, and the old ones serve", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(4)) }, stuckRollout, []*corev1.Pod{old, old, old, noImage}, false,
			"is rolling out: 1 of 4 pods are new, 0 of them ready", "still there: 3 (3 ready: they still serve)"},
		{"paused", func(d *appsv1.Deployment) { d.Spec.Paused = true }, whole, []*corev1.Pod{fresh}, true, "has 1 of 1 pods ready", "it is paused; a changed template is not rolled out until it is resumed"},
		{"paused in the middle", func(d *appsv1.Deployment) { d.Spec.Paused = true }, stuckRollout, []*corev1.Pod{old, noImage}, false, "is rolling out: 1 of 1 pods are new", "it is paused in the middle of it"},
		{"not seen by its controller", func(d *appsv1.Deployment) { d.Generation = 2 }, whole, []*corev1.Pod{fresh}, false, "has 1 of 1 pods ready", "has not acted on its newest spec"},
		{"scaled to nothing", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) }, appsv1.DeploymentStatus{}, nil, true, "has 0 of 0 pods ready", ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Status: x.st}
			if x.change != nil {
				x.change(d)
			}
			s := situation{kind: api.Deployments, obj: d, now: noon, pods: x.pods, nodes: []*corev1.Node{goodNode("n")}}
			if x.pods != nil {
				s.template = template{"hash", newest}
			}
			expect(t, explain(s), x.good, x.head, x.why)
		})
	}
}

// A ReplicationController is a workload like a ReplicaSet: it is scaled, and explained by its conditions and its pods.
func TestReplicationControllers(t *testing.T) {
	rc := &corev1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "rc"},
		Spec: corev1.ReplicationControllerSpec{Replicas: new(int32(2)), Selector: map[string]string{"app": "web"}},
		Status: corev1.ReplicationControllerStatus{Replicas: 1, Conditions: []corev1.ReplicationControllerCondition{{
			Type: corev1.ReplicationControllerReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "there is no room"}}}}
	crashed := podOf("web-1", "", crashing)
	crashed.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ReplicationController", Name: "web", UID: "rc", Controller: new(true)}}
	f := newFake(t, rc, crashed, goodNode("n"))
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

// What is to be typed next fits what is the matter.
func TestExplainRolloutNext(t *testing.T) {
	template7 := template{"hash", newest}
	old, fresh := podOf("old", "6", nil), podOf("fresh", newest, nil)
	paused := appsv1.DeploymentSpec{Paused: true}
	onDelete := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "web"}}
	onDelete.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	choosy := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "web"}}
	choosy.Spec.Template.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	deployment := func(spec appsv1.DeploymentSpec) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "web"}, Spec: spec}
	}
	for _, x := range []struct {
		name     string
		obj      api.Object
		template template
		pods     []*corev1.Pod
		head     string
		next     string // empty: no command of a rollout
	}{
		{"stuck", deployment(appsv1.DeploymentSpec{}), template7, []*corev1.Pod{old, podOf("fresh", newest, waiting("ErrImagePull"))}, "is rolling out", "rollout undo deployment web -n x"},
		{"on its way", deployment(appsv1.DeploymentSpec{}), template7, []*corev1.Pod{old, podOf("fresh", newest, waiting("ContainerCreating"))}, "is rolling out", ""},
		{"an old one is not well", deployment(appsv1.DeploymentSpec{}), template7, []*corev1.Pod{podOf("old", "6", crashing), fresh}, "is rolling out", ""},
		{"paused", deployment(paused), template7, []*corev1.Pod{fresh}, "has 1 of 1 pods ready", "rollout resume deployment web -n x"},
		{"paused before it began", deployment(paused), template{"hash", noTemplate}, []*corev1.Pod{old},
			"is paused; a changed template is not rolled out (1 of 1 pods of the old one ready)", "rollout resume deployment web -n x"},
		{"paused and stuck: undo would be refused", deployment(paused), template7, []*corev1.Pod{old, podOf("fresh", newest, waiting("ErrImagePull"))}, "is rolling out", "rollout resume deployment web -n x"},
		{"a daemon set that is stuck", &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "web"}, Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 1}}, template7,
			[]*corev1.Pod{old, podOf("fresh", newest, crashing)}, "is rolling out", "rollout undo daemonset web -n x"},
		{"a daemon set that leaves old pods alone", onDelete, template7, []*corev1.Pod{fresh, old}, "has", "delete pod old"},
		{"a daemon set that no node fits", choosy, template7, nil, "has no node to run on", "label nodes n disk=ssd"},
	} {
		v := explain(situation{kind: api.KindOf(x.obj), obj: x.obj, now: noon, template: x.template, pods: x.pods, nodes: []*corev1.Node{goodNode("n")}})
		next := strings.Join(v.next, "\n")
		if !strings.Contains(v.head, x.head) || !strings.Contains(next, x.next) || !strings.Contains(x.next, "undo") && strings.Contains(next, "undo") {
			t.Errorf("%s: %s\n%s\n%s", x.name, v.head, strings.Join(v.why, "\n"), next)
		}
	}
}

// expect compares a verdict with its head and one of the reasons; without one, there must be none.
func expect(t *testing.T, v verdict, good bool, head, why string) {
	t.Helper()
	said := strings.Join(v.why, "\n")
	if v.good != good || !strings.Contains(v.head, head) || !strings.Contains(said, why) || why == "" && said != "" {
		t.Errorf("good: %v; %s\n%s", v.good, v.head, said)
	}
}

func TestExplainDaemonSet(t *testing.T) {
	// With surge the node counts as ready by its old pod, and as updated by its new one.
	surging := appsv1.DaemonSetStatus{DesiredNumberScheduled: 1, CurrentNumberScheduled: 1, UpdatedNumberScheduled: 1, NumberReady: 1, NumberAvailable: 1}
	half := appsv1.DaemonSetStatus{DesiredNumberScheduled: 2, CurrentNumberScheduled: 2, UpdatedNumberScheduled: 1, NumberReady: 2, NumberAvailable: 2}
	old, fresh := podOf("old", "6", nil), podOf("fresh", newest, nil)
	tainted := goodNode("gpu")
	tainted.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}, {Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
	for _, x := range []struct {
		name   string
		change func(*appsv1.DaemonSet)
		st     appsv1.DaemonSetStatus
		pods   []*corev1.Pod
		nodes  []*corev1.Node
		good   bool
		head   string
		why    string
	}{
		{"well", nil, surging, []*corev1.Pod{fresh}, nil, true, "has 1 of 1 pods ready", ""},
		{"stuck with surge", nil, surging, []*corev1.Pod{old, podOf("fresh", newest, waiting("ImagePullBackOff"))}, nil, false, "is rolling out: 1 of 1 pods are new, 0 of them ready", "cannot be had"},
		{"half way", nil, half, []*corev1.Pod{old, fresh}, nil, false, "is rolling out: 1 of 2 pods are new, 1 of them ready", "node by node"},
		{"half way, by its numbers alone", nil, half, nil, nil, false, "is rolling out: 1 of 2 pods are new, 1 of them ready", "node by node"},
		{"old ones are left alone", func(ds *appsv1.DaemonSet) { ds.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType }, half,
			[]*corev1.Pod{old, fresh}, nil, true, "has 2 of 2 pods ready", "1 pod has the old template; the updateStrategy is OnDelete: delete it"},
		{"no node", nil, appsv1.DaemonSetStatus{}, nil, []*corev1.Node{}, false, "has no node to run on", "there is no node at all"},
		{"no node with the label", func(ds *appsv1.DaemonSet) { ds.Spec.Template.Spec.NodeSelector = map[string]string{"disk": "ssd"} }, appsv1.DaemonSetStatus{},
			nil, nil, false, "has no node to run on", "no node matches disk=ssd"},
		{"every node has a taint", nil, appsv1.DaemonSetStatus{}, nil, []*corev1.Node{tainted}, false, "has no node to run on", "node gpu has the taint gpu:NoSchedule"},
	} {
		t.Run(x.name, func(t *testing.T) {
			ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Status: x.st}
			if x.change != nil {
				x.change(ds)
			}
			if x.nodes == nil {
				x.nodes = []*corev1.Node{goodNode("n")}
			}
			s := situation{kind: api.DaemonSets, obj: ds, now: noon, pods: x.pods, nodes: x.nodes}
			if x.pods != nil {
				s.template = template{"hash", newest}
			}
			expect(t, explain(s), x.good, x.head, x.why)
		})
	}
}

// The pod to blame is the first of each list, wherever in the list it stands.
func TestBlamed(t *testing.T) {
	younger := func(change func(*corev1.Pod)) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			change(p)
			p.CreationTimestamp = ago(0)
		}
	}
	for _, x := range []struct {
		name string
		pods []*corev1.Pod
	}{
		{"a crash before a wait", []*corev1.Pod{podOf("a", newest, crashing), podOf("b", newest, waiting("ContainerCreating"))}},
		{"no node before a wait", []*corev1.Pod{podOf("a", newest, unscheduled), podOf("b", newest, waiting("ContainerCreating"))}},
		{"no image before no node", []*corev1.Pod{podOf("a", newest, waiting("ErrImagePull")), podOf("b", newest, unscheduled)}},
		{"a new one before an old one", []*corev1.Pod{podOf("a", newest, waiting("ContainerCreating")), podOf("b", "6", crashing)}},
		{"one that is leaving last", []*corev1.Pod{podOf("a", "6", crashing), podOf("b", newest, departing)}},
		{"one that was replaced late", []*corev1.Pod{podOf("a", newest, waiting("ContainerCreating")), podOf("b", newest, gaveUp)}},
		{"on a node that is lost", []*corev1.Pod{podOf("a", newest, func(p *corev1.Pod) { p.Spec.NodeName = "lost" }), podOf("b", newest, waiting("ContainerCreating"))}},
		{"the younger of two", []*corev1.Pod{podOf("a", newest, younger(crashing)), podOf("b", newest, crashing)}},
		{"none that is well", []*corev1.Pod{podOf("a", "6", departing), podOf("b", newest, nil)}},
	} {
		for _, turned := range []bool{false, true} {
			s := situation{obj: &appsv1.Deployment{}, template: template{"hash", newest}, nodes: []*corev1.Node{goodNode("n")}, pods: slices.Clone(x.pods)}
			if turned {
				slices.Reverse(s.pods)
			}
			if got := s.blamed(); got == nil || got.Name != "a" {
				t.Errorf("%s (turned: %v): %v", x.name, turned, got)
			}
		}
	}
	s := situation{obj: &appsv1.Deployment{}, pods: []*corev1.Pod{podOf("a", newest, nil)}, nodes: []*corev1.Node{goodNode("n")}}
	if got := s.blamed(); got != nil {
		t.Errorf("%s is blamed, and is well", got.Name)
	}
}

// The whole way for a deployment whose new pod cannot mount a volume, or crashes: only the pod's events and
// its log tell why.
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
		p := podOf(name, hash, change)
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
		{"a volume", waiting("ContainerCreating"), `configmap "settings" not found`},
		{"a crash", crashing, "no such table"},
	} {
		stranger := pod("stranger", newest, unscheduled)
		stranger.OwnerReferences = nil
		f := newFake(t, d, set("web-6", "6", "other"), set("web-7", newest, ""), pod("old", "6", nil), pod("fresh", newest, x.change), stranger, event, goodNode("n"))
		f.logs["fresh?container=web&previous=true&tailLines=10"] = "no such table\n"
		r := f.ctl("", "why", "deployment/web")
		if r.code != 0 || !strings.Contains(r.out, "is rolling out: 1 of 1 pods are new, 0 of them ready") || !strings.Contains(r.out, x.want) || strings.Contains(r.out, "stranger") {
			t.Errorf("%s: %d %s\n%s", x.name, r.code, r.text, r.out)
		}
	}
}

// The whole way for one that is paused: its command names it, though nothing of it has been made.
func TestWhyPaused(t *testing.T) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "d"}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	d.Spec.Paused = true
	r := newFake(t, d, goodNode("n")).ctl("", "why", "deployment", "web")
	if r.code != 0 || !strings.Contains(r.out, "is paused; a changed template is not rolled out") || !strings.Contains(r.out, "minik8sd ctl rollout resume deployment web") {
		t.Errorf("%d %s\n%s", r.code, r.text, r.out)
	}
}
