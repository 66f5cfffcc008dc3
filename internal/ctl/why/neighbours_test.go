package why

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/placement"
	"minik8s/internal/ctl/why/whytest"
)

// Pods are selected as in the scheduler: the explanation names the pods that caused the refusal, and no others.
func TestExplainNeighbours(t *testing.T) {
	const (
		apart = "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, TERM}]}}"
		with  = "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, TERM}]}}"
		both  = "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [" +
			"{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}, {topologyKey: zone, labelSelector: {matchLabels: {tier: x}}}]}}"
		spread = "topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, TERM}]"
		web    = "labelSelector: {matchLabels: {app: web}}"
		teamA  = web + ", namespaceSelector: {matchLabels: {team: a}}"
	)
	namespaces := placement.NamespaceLabels{"default": {"kind": "tests"}, "blue": {"team": "a"}, "red": {"team": "b"}}
	node := labelledNode("n1", "zone=a")
	gpu := labelledNode("n2", "zone=b", "gpu=yes")
	tainted := labelledNode("n2", "zone=b")
	tainted.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	on := func(namespace, name, node, spec string) *corev1.Pod {
		p := placedPod(t, name, node, spec)
		p.Namespace = namespace
		return p
	}
	hashed := func(p *corev1.Pod, hash string) *corev1.Pod { p.Labels["hash"] = hash; return p }
	cordoned := labelledNode("n2", "zone=b")
	cordoned.Spec.Unschedulable = true
	leaving := hashed(on("default", "gone", "n1", "{}"), "7")
	whytest.Departing(leaving)
	for _, x := range []struct {
		name, form, term string
		nodes            []*corev1.Node
		placed           []*corev1.Pod
		code             placement.Code
		why, without     []string
	}{
		{"anti-affinity to namespaces by label", apart, teamA, []*corev1.Node{node}, []*corev1.Pod{on("default", "own", "n1", "{}"), on("red", "other", "n1", "{}"), on("blue", "near", "n1", "{}")},
			placement.PodAntiAffinity, []string{"a pod with app=web of a namespace with team=a; in the way: blue/near on n1"}, []string{"default/own", "red/other"}},
		{"affinity to namespaces by label", with, teamA, []*corev1.Node{node}, []*corev1.Pod{on("red", "other", "n1", "{}")},
			placement.PodAffinity, []string{"wants a pod with app=web of a namespace with team=a in the same kubernetes.io/hostname; there is none that has a node", "get pods -l 'app=web' -o wide -A"}, []string{"red/other"}},
		{"anti-affinity to namespaces by name and label", apart, teamA + ", namespaces: [red]", []*corev1.Node{node}, []*corev1.Pod{on("default", "own", "n1", "{}"), on("red", "other", "n1", "{}")},
			placement.PodAntiAffinity, []string{"of namespace red or a namespace with team=a; in the way: red/other on n1"}, []string{"default/own"}},
		{"the anti-affinity of others, to namespaces by label", "{}", "", []*corev1.Node{node},
			[]*corev1.Pod{on("blue", "near", "n1", strings.Replace(apart, "TERM", web+", namespaceSelector: {matchLabels: {kind: tests}}", 1)), on("red", "other", "n1", strings.Replace(apart, "TERM", teamA, 1))},
			placement.OthersAntiAffinity, []string{"the podAntiAffinity of pod blue/near on n1"}, []string{"red/other"}},
		{"no labelSelector", with, "namespaces: [default]", []*corev1.Node{node}, []*corev1.Pod{on("default", "own", "n1", "{}")},
			placement.PodAffinity, []string{"without a labelSelector no pod is chosen", "there is none"}, []string{"default/own"}},
		{"several terms: one pod must meet them all", both, "", []*corev1.Node{node}, []*corev1.Pod{on("default", "own", "n1", "{}")},
			placement.PodAffinity, []string{"wants a pod with app=web in the same kubernetes.io/hostname; there is none", "wants a pod with tier=x in the same zone; there is none"}, []string{"default/own"}},
		{"matchLabelKeys", apart, web + ", matchLabelKeys: [hash]", []*corev1.Node{node}, []*corev1.Pod{hashed(on("default", "old", "n1", "{}"), "6"), hashed(on("default", "new", "n1", "{}"), "7")},
			placement.PodAntiAffinity, []string{"in the way: default/new on n1"}, []string{"default/old"}},
		{"mismatchLabelKeys", apart, web + ", mismatchLabelKeys: [hash]", []*corev1.Node{node}, []*corev1.Pod{hashed(on("default", "old", "n1", "{}"), "6"), hashed(on("default", "new", "n1", "{}"), "7")},
			placement.PodAntiAffinity, []string{"in the way: default/old on n1"}, []string{"default/new"}},
		{"a host port of an init container, which has ended", "{initContainers: [{name: i, ports: [{hostPort: 80}]}], containers: [{name: c, ports: [{hostPort: 81}]}]}", "", []*corev1.Node{node},
			[]*corev1.Pod{on("default", "own", "n1", "containers: [{name: c, ports: [{hostPort: 80}]}]"), on("default", "other", "n1", "containers: [{name: c, ports: [{hostPort: 81}]}]")},
			placement.HostPort, []string{"host port 81/TCP of node n1 is taken by pod default/other"}, []string{"host port 80", "default/own"}},
		{"spread counts by matchLabelKeys", spread, web + ", matchLabelKeys: [hash]", []*corev1.Node{node, cordoned},
			[]*corev1.Pod{hashed(on("default", "old", "n1", "{}"), "6"), hashed(on("default", "new", "n1", "{}"), "7"), leaving},
			placement.Spread, []string{"now: a 1, b 0"}, nil},
		{"spread with nodeAffinityPolicy Ignore", "nodeSelector: {gpu: 'yes'}\n" + spread, web + ", nodeAffinityPolicy: Ignore", []*corev1.Node{node, gpu}, []*corev1.Pod{on("default", "there", "n2", "{}")},
			placement.Spread, []string{"now: a 0, b 1"}, nil},
		{"spread with nodeTaintsPolicy Ignore", spread, web, []*corev1.Node{node, tainted}, []*corev1.Pod{on("default", "there", "n1", "{}")},
			placement.Spread, []string{"now: a 1, b 0"}, nil},
		{"spread with nodeTaintsPolicy Honor", spread, web + ", nodeTaintsPolicy: Honor, minDomains: 2", []*corev1.Node{node, tainted}, []*corev1.Pod{on("default", "there", "n1", "{}")},
			placement.Spread, []string{"now: a 1\n", "minDomains asks for 2 of zone"}, []string{"b 0"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			pod := hashed(whytest.PodOf("web", "", whytest.Unscheduled), "7")
			pod.Spec = *podSpec(t, strings.Replace(x.form, "TERM", x.term, 1))
			refusal := refuse(t, pod, x.nodes, x.placed, namespaces)
			if _, ok := refusal.Nodes[x.code]; !ok {
				t.Fatalf("the scheduler refuses by %v", refusal.Nodes)
			}
			refusal.Nodes.Publish(pod)
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: refusal.Text}}
			v := explain(situation{kind: api.Pods, obj: pod, now: whytest.Noon, nodes: x.nodes, placed: x.placed, namespaces: namespaces})
			text := strings.Join(append(v.Why, v.Next...), "\n") + "\n"
			for _, w := range x.why {
				if !strings.Contains(text, w) {
					t.Errorf("without %q:\n%s", w, text)
				}
			}
			for _, w := range x.without {
				if strings.Contains(text, w) {
					t.Errorf("with %q:\n%s", w, text)
				}
			}
		})
	}
}
