package why

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/ctl/why/whytest"
)

func TestExplainDeployment(t *testing.T) {
	stuckRollout := appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1, UnavailableReplicas: 1}
	late := stuckRollout
	late.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded",
		Message: `ReplicaSet "web-7" has timed out progressing.`}}
	whole := appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
	short := whole
	short.AvailableReplicas, short.UnavailableReplicas = 0, 1
	old, fresh := whytest.PodOf("old", "6", nil), whytest.PodOf("fresh", whytest.Newest, nil)
	noImage := whytest.PodOf("fresh", whytest.Newest, whytest.Waiting("ErrImagePull"))
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
		{"the old one is going", nil, whole, []*corev1.Pod{whytest.PodOf("old", "6", whytest.Departing), fresh}, true, "has 1 of 1 pods ready", ""},
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
			s := situation{kind: api.Deployments, obj: d, now: whytest.Noon, pods: x.pods, nodes: []*corev1.Node{whytest.GoodNode("n")}}
			if x.pods != nil {
				s.template = template{"hash", whytest.Newest}
			}
			expect(t, explain(s), x.good, x.head, x.why)
		})
	}
}

// The suggested commands fit the problem.
func TestExplainRolloutNext(t *testing.T) {
	template7 := template{"hash", whytest.Newest}
	old, fresh := whytest.PodOf("old", "6", nil), whytest.PodOf("fresh", whytest.Newest, nil)
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
		{"stuck", deployment(appsv1.DeploymentSpec{}), template7, []*corev1.Pod{old, whytest.PodOf("fresh", whytest.Newest, whytest.Waiting("ErrImagePull"))}, "is rolling out", "rollout undo deployment web -n x"},
		{"on its way", deployment(appsv1.DeploymentSpec{}), template7, []*corev1.Pod{old, whytest.PodOf("fresh", whytest.Newest, whytest.Waiting("ContainerCreating"))}, "is rolling out", ""},
		{"an old one is not well", deployment(appsv1.DeploymentSpec{}), template7, []*corev1.Pod{whytest.PodOf("old", "6", whytest.Crashing), fresh}, "is rolling out", ""},
		{"paused", deployment(paused), template7, []*corev1.Pod{fresh}, "has 1 of 1 pods ready", "rollout resume deployment web -n x"},
		{"paused before it began", deployment(paused), template{"hash", noTemplate}, []*corev1.Pod{old},
			"is paused; a changed template is not rolled out (1 of 1 pods of the old one ready)", "rollout resume deployment web -n x"},
		{"paused and stuck: undo would be refused", deployment(paused), template7, []*corev1.Pod{old, whytest.PodOf("fresh", whytest.Newest, whytest.Waiting("ErrImagePull"))}, "is rolling out", "rollout resume deployment web -n x"},
		{"a daemon set that is stuck", &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "web"}, Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 1}}, template7,
			[]*corev1.Pod{old, whytest.PodOf("fresh", whytest.Newest, whytest.Crashing)}, "is rolling out", "rollout undo daemonset web -n x"},
		{"a daemon set that leaves old pods alone", onDelete, template7, []*corev1.Pod{fresh, old}, "has", "delete pod old"},
		{"a daemon set that no node fits", choosy, template7, nil, "has no node to run on", "label nodes n disk=ssd"},
	} {
		v := explain(situation{kind: api.KindOf(x.obj), obj: x.obj, now: whytest.Noon, template: x.template, pods: x.pods, nodes: []*corev1.Node{whytest.GoodNode("n")}})
		next := strings.Join(v.Next, "\n")
		if !strings.Contains(v.Head, x.head) || !strings.Contains(next, x.next) || !strings.Contains(x.next, "undo") && strings.Contains(next, "undo") {
			t.Errorf("%s: %s\n%s\n%s", x.name, v.Head, strings.Join(v.Why, "\n"), next)
		}
	}
}

// expect compares an Explanation's head and one of its reasons; with an empty why there must be none.
func expect(t *testing.T, v Explanation, good bool, head, why string) {
	t.Helper()
	said := strings.Join(v.Why, "\n")
	if v.Good != good || !strings.Contains(v.Head, head) || !strings.Contains(said, why) || why == "" && said != "" {
		t.Errorf("good: %v; %s\n%s", v.Good, v.Head, said)
	}
}

func TestExplainDaemonSet(t *testing.T) {
	// With surge, the old pod makes the node count as ready, and the new one makes it count as updated.
	surging := appsv1.DaemonSetStatus{DesiredNumberScheduled: 1, CurrentNumberScheduled: 1, UpdatedNumberScheduled: 1, NumberReady: 1, NumberAvailable: 1}
	half := appsv1.DaemonSetStatus{DesiredNumberScheduled: 2, CurrentNumberScheduled: 2, UpdatedNumberScheduled: 1, NumberReady: 2, NumberAvailable: 2}
	old, fresh := whytest.PodOf("old", "6", nil), whytest.PodOf("fresh", whytest.Newest, nil)
	tainted := whytest.GoodNode("gpu")
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
		{"stuck with surge", nil, surging, []*corev1.Pod{old, whytest.PodOf("fresh", whytest.Newest, whytest.Waiting("ImagePullBackOff"))}, nil, false, "is rolling out: 1 of 1 pods are new, 0 of them ready", "cannot be had"},
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
				x.nodes = []*corev1.Node{whytest.GoodNode("n")}
			}
			s := situation{kind: api.DaemonSets, obj: ds, now: whytest.Noon, pods: x.pods, nodes: x.nodes}
			if x.pods != nil {
				s.template = template{"hash", whytest.Newest}
			}
			expect(t, explain(s), x.good, x.head, x.why)
		})
	}
}

// The pod to blame is the first of each list, wherever it is among the pods.
func TestBlamed(t *testing.T) {
	younger := func(change func(*corev1.Pod)) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			change(p)
			p.CreationTimestamp = whytest.Ago(0)
		}
	}
	for _, x := range []struct {
		name string
		pods []*corev1.Pod
	}{
		{"a crash before a wait", []*corev1.Pod{whytest.PodOf("a", whytest.Newest, whytest.Crashing), whytest.PodOf("b", whytest.Newest, whytest.Waiting("ContainerCreating"))}},
		{"no node before a wait", []*corev1.Pod{whytest.PodOf("a", whytest.Newest, whytest.Unscheduled), whytest.PodOf("b", whytest.Newest, whytest.Waiting("ContainerCreating"))}},
		{"no image before no node", []*corev1.Pod{whytest.PodOf("a", whytest.Newest, whytest.Waiting("ErrImagePull")), whytest.PodOf("b", whytest.Newest, whytest.Unscheduled)}},
		{"a new one before an old one", []*corev1.Pod{whytest.PodOf("a", whytest.Newest, whytest.Waiting("ContainerCreating")), whytest.PodOf("b", "6", whytest.Crashing)}},
		{"one that is leaving last", []*corev1.Pod{whytest.PodOf("a", "6", whytest.Crashing), whytest.PodOf("b", whytest.Newest, whytest.Departing)}},
		{"one that was replaced late", []*corev1.Pod{whytest.PodOf("a", whytest.Newest, whytest.Waiting("ContainerCreating")), whytest.PodOf("b", whytest.Newest, whytest.GaveUp)}},
		{"on a node that is lost", []*corev1.Pod{whytest.PodOf("a", whytest.Newest, func(p *corev1.Pod) { p.Spec.NodeName = "lost" }), whytest.PodOf("b", whytest.Newest, whytest.Waiting("ContainerCreating"))}},
		{"the younger of two", []*corev1.Pod{whytest.PodOf("a", whytest.Newest, younger(whytest.Crashing)), whytest.PodOf("b", whytest.Newest, whytest.Crashing)}},
		{"none that is well", []*corev1.Pod{whytest.PodOf("a", "6", whytest.Departing), whytest.PodOf("b", whytest.Newest, nil)}},
	} {
		for _, turned := range []bool{false, true} {
			s := situation{obj: &appsv1.Deployment{}, template: template{"hash", whytest.Newest}, nodes: []*corev1.Node{whytest.GoodNode("n")}, pods: slices.Clone(x.pods)}
			if turned {
				slices.Reverse(s.pods)
			}
			if got := s.blamed(); got == nil || got.Name != "a" {
				t.Errorf("%s (turned: %v): %v", x.name, turned, got)
			}
		}
	}
	s := situation{obj: &appsv1.Deployment{}, pods: []*corev1.Pod{whytest.PodOf("a", whytest.Newest, nil)}, nodes: []*corev1.Node{whytest.GoodNode("n")}}
	if got := s.blamed(); got != nil {
		t.Errorf("%s is blamed, and is well", got.Name)
	}
}

// A daemon set's nodes are chosen by the controller's own rule.
func TestDaemonSetWithoutANode(t *testing.T) {
	for what, x := range map[string]struct {
		spec  corev1.PodSpec
		taint string
		says  string // empty: the node would do
	}{
		"a node that is not there":      {corev1.PodSpec{NodeName: "elsewhere"}, "", "there is no such node"},
		"its own node":                  {corev1.PodSpec{NodeName: "n"}, "", ""},
		"its pods stay at any pressure": {corev1.PodSpec{}, corev1.TaintNodeDiskPressure, ""},
		"no network":                    {corev1.PodSpec{}, corev1.TaintNodeNetworkUnavailable, "do not tolerate"},
		"it needs no network":           {corev1.PodSpec{HostNetwork: true}, corev1.TaintNodeNetworkUnavailable, ""},
	} {
		node := whytest.GoodNode("n")
		if x.taint != "" {
			node.Spec.Taints = []corev1.Taint{{Key: x.taint, Effect: corev1.TaintEffectNoSchedule}}
		}
		ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "web"}}
		ds.Spec.Template.Spec = x.spec
		v := explain(situation{kind: api.DaemonSets, obj: ds, now: whytest.Noon, nodes: []*corev1.Node{node}})
		if said := strings.Join(v.Why, "\n"); !strings.Contains(said, x.says) || x.says == "" && said != "" {
			t.Errorf("%s: %q, want %q", what, said, x.says)
		}
	}
}
