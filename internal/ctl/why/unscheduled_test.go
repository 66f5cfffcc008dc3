package why

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"minik8s/internal/api"
	"minik8s/internal/api/placement"
	"minik8s/internal/ctl/why/whytest"
	"minik8s/internal/scheduler/plan"
)

// labelledNode returns a ready node with room for one core.
func labelledNode(name string, labels ...string) *corev1.Node {
	node := whytest.GoodNode(name)
	node.Labels = map[string]string{corev1.LabelHostname: name}
	for _, l := range labels {
		key, value, _ := strings.Cut(l, "=")
		node.Labels[key] = value
	}
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourcePods: resource.MustParse("110")}
	return node
}

// placedPod returns a pod of the app web on a node, with a spec in YAML.
func placedPod(t *testing.T, name, node, spec string) *corev1.Pod {
	pod := whytest.PodOf(name, "", func(p *corev1.Pod) { p.Spec = *podSpec(t, spec) })
	pod.Spec.NodeName = node
	return pod
}

func podSpec(t *testing.T, text string) *corev1.PodSpec {
	t.Helper()
	spec := &corev1.PodSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

// refuse returns what the scheduler says of a pod that no node takes.
func refuse(t *testing.T, pod *corev1.Pod, nodes []*corev1.Node, placed []*corev1.Pod, namespaces placement.NamespaceLabels) *plan.Refusal {
	t.Helper()
	c := plan.New(1)
	c.SetNamespace("default", nil)
	for name, labels := range namespaces {
		c.SetNamespace(name, labels)
	}
	for _, n := range nodes {
		c.SetNode(n)
	}
	for _, p := range placed {
		p.UID = types.UID(p.Name)
		c.Place(c.Pod(p), p.Spec.NodeName)
	}
	node, refusal := c.Choose(c.Pod(pod))
	if refusal == nil {
		t.Fatalf("the scheduler takes node %s", node)
	}
	return refusal
}

func TestExplainUnscheduled(t *testing.T) {
	const (
		selector = "node(s) didn't match Pod's node affinity/selector"
		anti     = "node(s) didn't match pod anti-affinity rules"
		perHost  = "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}]}}"
		with     = "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: db}}}]}}"
		spread   = "topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]"
		port     = "containers: [{name: c, ports: [{containerPort: 80, hostPort: 8080}]}]"
	)
	inZones := []*corev1.Node{labelledNode("n1", "zone=a"), labelledNode("n2", "zone=b"), labelledNode("vm")}
	inZones[1].Spec.Unschedulable = true
	hollow := []*corev1.Node{labelledNode("n1", "hollow=yes"), labelledNode("n2", "hollow=yes"), labelledNode("vm")}
	cordoned := labelledNode("vm")
	cordoned.Spec.Unschedulable = true
	tainted := labelledNode("vm")
	tainted.Spec.Taints = []corev1.Taint{{Key: "z", Value: "z", Effect: corev1.TaintEffectNoExecute}}
	bare := labelledNode("vm")
	bare.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	on := func(node, spec string) *corev1.Pod { return placedPod(t, "on-"+node, node, spec) }
	for _, x := range []struct {
		name, spec, text string
		nodes            []*corev1.Node
		placed           []*corev1.Pod
		why              []string
		next             []string
		without          string // in the advice
	}{
		{"the node that lacks the label, not those that have it", "nodeSelector: {hollow: 'yes'}\n" + perHost, "1 " + selector + ", 2 " + anti, hollow,
			[]*corev1.Pod{on("n1", "{}"), on("n2", "{}")},
			[]string{"nodes that do not match hollow=yes: vm", "its podAntiAffinity keeps it from any kubernetes.io/hostname with a pod with app=web; in the way: default/on-n1 on n1, default/on-n2 on n2"},
			[]string{"minik8sd ctl label nodes vm hollow=yes", "minik8sd ctl describe pod on-n1"}, "label nodes n"},
		{"a label that would not help: a pod is in the way there too", "nodeSelector: {hollow: 'yes'}\n" + perHost, "1 " + selector + ", 2 " + anti, hollow,
			[]*corev1.Pod{on("n1", "{}"), on("n2", "{}"), on("vm", "{}")}, []string{"nodes that do not match hollow=yes: vm"}, nil, "label nodes"},
		{"a label that would not help: cordoned", "nodeSelector: {hollow: 'yes'}", "1 node(s) were unschedulable", []*corev1.Node{cordoned}, nil,
			[]string{"cordoned: vm"}, []string{"uncordon vm"}, "label nodes"},
		{"a label that would not help: full", "nodeSelector: {a: b}\ncontainers: [{name: c, resources: {requests: {cpu: 600m}}}]", "1 " + selector, hollow[:1],
			[]*corev1.Pod{on("n1", "containers: [{name: c, resources: {requests: {cpu: 500m}}}]")}, []string{"no node matches a=b"}, nil, "label nodes"},
		{"several labels", "nodeSelector: {a: b, c: d, hollow: 'yes'}", "1 " + selector, hollow[:1], nil, []string{"no node matches a=b and c=d and hollow=yes"},
			[]string{"label nodes n1 a=b c=d"}, "hollow"},
		{"another value", "nodeSelector: {hollow: 'no'}", "1 " + selector, hollow[:1], nil, nil, []string{"label nodes n1 hollow=no --overwrite"}, ""},
		{"another host's name", "nodeSelector: {kubernetes.io/hostname: n7}", "1 " + selector, hollow[:1], nil, []string{"no node matches kubernetes.io/hostname=n7"}, nil, "label nodes"},
		{"node affinity", "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: In, values: [ssd, nvme]}]}]}}}",
			"1 " + selector, hollow[:1], nil, []string{"no node matches disk In (ssd, nvme)"}, []string{"label nodes n1 disk=ssd"}, ""},
		{"a taint", "{}", "1 node(s) had untolerated taint {z: z}", []*corev1.Node{tainted}, nil, []string{"node vm has the taint z=z:NoExecute, which the pod does not tolerate"},
			[]string{"{key: z, operator: Equal, value: z, effect: NoExecute}", "kubectl taint nodes vm z=z:NoExecute-", "minik8sd ctl describe node vm"}, ""},
		{"a taint without a value", "{}", "1 node(s) had untolerated taint {gpu: }", []*corev1.Node{bare}, nil, nil, []string{"{key: gpu, operator: Exists, effect: NoSchedule}"}, ""},
		{"a host port", port, "1 node(s) didn't have free ports for the requested pod ports", hollow[:1], []*corev1.Pod{on("n1", port)},
			[]string{"host port 8080/TCP of node n1 is taken by pod default/on-n1"}, []string{"minik8sd ctl describe pod on-n1"}, ""},
		{"affinity to nobody", with, "1 node(s) didn't match pod affinity rules", hollow[:1], []*corev1.Pod{on("n1", "{}")},
			[]string{"its podAffinity wants a pod with app=db in the same kubernetes.io/hostname; there is none that has a node"}, []string{"minik8sd ctl get pods -l 'app=db' -o wide"}, "get nodes"},
		{"an existing pod's anti-affinity", "{}", "1 node(s) didn't satisfy existing pods anti-affinity rules", hollow[:1], []*corev1.Pod{on("n1", perHost)},
			[]string{"the podAntiAffinity of pod default/on-n1 on n1 keeps pods with app=web from its kubernetes.io/hostname"}, []string{"minik8sd ctl describe pod on-n1"}, ""},
		{"topology spread", spread, "1 node(s) didn't match pod topology spread constraints, 1 node(s) didn't match pod topology spread constraints (missing required label)",
			inZones, []*corev1.Pod{on("n1", "{}")},
			[]string{"its topologySpreadConstraints let the pods with app=web differ by 1 from zone to zone; now: a 1, b 0", "nodes without the label zone, which cannot take it: vm"},
			[]string{"minik8sd ctl label nodes vm zone=VALUE", "maxSkew"}, ""},
		{"topology spread over nothing", spread, "1 node(s) didn't match pod topology spread constraints (missing required label)", hollow[:1], nil,
			[]string{"now: there is none that it could go to"}, []string{"label nodes n1 zone=VALUE"}, ""},
		{"too much", "containers: [{name: c, resources: {requests: {cpu: 2}}}]", "1 Insufficient cpu", hollow[:1], nil, nil, []string{"resources.requests"}, ""},
		{"gates", "schedulingGates: [{name: example.com/quota}, {name: b}]", "Scheduling is blocked due to non-empty scheduling gates", hollow[:1], nil,
			[]string{"the gate example.com/quota", "the gate b"}, []string{`kubectl patch pod web --type=json -p '[{"op":"remove","path":"/spec/schedulingGates/0"}]'`}, "get nodes"},
	} {
		t.Run(x.name, func(t *testing.T) {
			pod := whytest.PodOf("web", "", whytest.Unscheduled)
			pod.Spec = *podSpec(t, x.spec)
			message := x.text
			if len(pod.Spec.SchedulingGates) == 0 {
				refusal := refuse(t, pod, x.nodes, x.placed, nil)
				refusal.Nodes.Publish(pod)
				for _, part := range strings.Split(x.text, ", ") {
					if message = refusal.Text; !strings.Contains(message, part) {
						t.Fatalf("the scheduler says %q, not %q", message, part)
					}
				}
			}
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: message}}
			v := explain(situation{kind: api.Pods, obj: pod, now: whytest.Noon, nodes: x.nodes, placed: x.placed})
			why, next := strings.Join(v.Why, "\n"), strings.Join(v.Next, "\n")
			for _, w := range x.why {
				if !strings.Contains(why, w) {
					t.Errorf("why:\n%s\nwant %s", why, w)
				}
			}
			for _, w := range x.next {
				if !strings.Contains(next, w) {
					t.Errorf("next:\n%s\nwant %s", next, w)
				}
			}
			if v.Good || len(v.Next) == 0 || x.without != "" && strings.Contains(next, x.without) {
				t.Errorf("good: %v; next:\n%s", v.Good, next)
			}
		})
	}
}
