package plan

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// filterCluster has nodes in three zones, each node with different properties, and some pods.
func filterCluster(t *testing.T) *Cluster {
	c := New(1)
	c.SetNamespace("default", map[string]string{"team": "a"})
	c.SetNamespace("prod", map[string]string{"team": "b"})
	a := ready("a", "2", "4Gi", 10, map[string]string{"zone": "1", "disk": "ssd", "cores": "8"})
	a.Status.Allocatable["example.com/gpu"] = resource.MustParse("1")
	b := ready("b", "4", "8Gi", 10, map[string]string{"zone": "1", "cores": "many"})
	b.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoSchedule}}
	d := ready("d", "1", "1Gi", 2, map[string]string{"zone": "2"})
	for _, n := range []*corev1.Node{a, b, d} {
		c.SetNode(n)
	}
	place := func(name, node string, labels map[string]string, spec string) {
		p := aPod(t, name, labels, spec)
		p.Spec.NodeName = node
		c.Place(c.Pod(p), node)
	}
	place("web", "a", map[string]string{"app": "web"}, `containers: [{name: c, ports: [{containerPort: 80, hostPort: 80}], resources: {requests: {cpu: 1500m}}}]`)
	place("lonely", "d", map[string]string{"app": "lonely"}, `
containers: [{name: c}]
affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchLabels: {app: noisy}}}]}}`)
	return c
}

func TestFilters(t *testing.T) {
	const plain = "containers: [{name: c}]\n"
	tolerant := plain + "tolerations: [{operator: Exists}]\n"
	term := func(kind, term string) string {
		return tolerant + "affinity: {" + kind + ": {requiredDuringSchedulingIgnoredDuringExecution: [" + term + "]}}"
	}
	nodeTerm := func(term string) string {
		return tolerant + "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" + term + "]}}}"
	}
	selector := "node(s) didn't match Pod's node affinity/selector"
	for _, test := range []struct {
		name, spec string
		labels     map[string]string
		a, b, d    string // the reasons, joined by a semicolon
	}{
		{name: "taint", spec: plain, b: "node(s) had untolerated taint {dedicated: db}"},
		{name: "toleration", spec: plain + "tolerations: [{key: dedicated, value: db, effect: NoSchedule}]"},
		{name: "toleration of another value", spec: plain + "tolerations: [{key: dedicated, value: web}]", b: "node(s) had untolerated taint {dedicated: db}"},
		{name: "toleration of another effect", spec: plain + "tolerations: [{key: dedicated, operator: Exists, effect: NoExecute}]", b: "node(s) had untolerated taint {dedicated: db}"},
		{name: "cpu", spec: tolerant + "overhead: {cpu: 600m}", a: "Insufficient cpu"},
		{name: "cpu and memory", spec: tolerant + "overhead: {cpu: 2, memory: 6Gi}", a: "Insufficient cpu;Insufficient memory", d: "Insufficient cpu;Insufficient memory"},
		{name: "init containers", spec: "containers: [{name: c}]\ninitContainers: [{name: i, resources: {requests: {cpu: 2}}}]\ntolerations: [{operator: Exists}]", a: "Insufficient cpu", d: "Insufficient cpu"},
		{name: "extended resource", spec: tolerant + "overhead: {example.com/gpu: 1}", b: "Insufficient example.com/gpu", d: "Insufficient example.com/gpu"},
		{name: "node name", spec: tolerant + "nodeName: b", a: "node(s) didn't match the requested node name", d: "node(s) didn't match the requested node name"},
		{name: "node selector", spec: tolerant + "nodeSelector: {disk: ssd}", b: selector, d: selector},
		{name: "In", spec: nodeTerm("{matchExpressions: [{key: zone, operator: In, values: ['2', '3']}]}"), a: selector, b: selector},
		{name: "NotIn", spec: nodeTerm("{matchExpressions: [{key: disk, operator: NotIn, values: [ssd]}]}"), a: selector},
		{name: "Exists", spec: nodeTerm("{matchExpressions: [{key: disk, operator: Exists}]}"), b: selector, d: selector},
		{name: "DoesNotExist", spec: nodeTerm("{matchExpressions: [{key: disk, operator: DoesNotExist}]}"), a: selector},
		{name: "Gt", spec: nodeTerm("{matchExpressions: [{key: cores, operator: Gt, values: ['7']}]}"), b: selector, d: selector},
		{name: "Lt", spec: nodeTerm("{matchExpressions: [{key: cores, operator: Lt, values: ['8']}]}"), a: selector, b: selector, d: selector},
		{name: "matchFields", spec: nodeTerm("{matchFields: [{key: metadata.name, operator: In, values: [d]}]}"), a: selector, b: selector},
		{name: "terms are alternatives", spec: nodeTerm("{matchFields: [{key: metadata.name, operator: In, values: [d]}]}, {matchExpressions: [{key: disk, operator: Exists}]}"), b: selector},
		{name: "an empty term takes nothing", spec: nodeTerm("{}"), a: selector, b: selector, d: selector},
		{name: "host port", spec: "containers: [{name: c, ports: [{containerPort: 1, hostPort: 80}]}]\ntolerations: [{operator: Exists}]", a: whyPorts},
		{name: "host port of another protocol", spec: "containers: [{name: c, ports: [{containerPort: 1, hostPort: 80, protocol: UDP}]}]\ntolerations: [{operator: Exists}]"},
		{name: "affinity", spec: term("podAffinity", "{topologyKey: zone, labelSelector: {matchLabels: {app: web}}}"), d: whyAffinity},
		{name: "affinity by host", spec: term("podAffinity", "{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}"), b: whyAffinity, d: whyAffinity},
		{name: "affinity to itself", labels: map[string]string{"app": "new"}, spec: term("podAffinity", "{topologyKey: zone, labelSelector: {matchLabels: {app: new}}}")},
		{name: "affinity to nobody", spec: term("podAffinity", "{topologyKey: zone, labelSelector: {matchLabels: {app: new}}}"), a: whyAffinity, b: whyAffinity, d: whyAffinity},
		{name: "affinity in another namespace", spec: term("podAffinity", "{topologyKey: zone, namespaces: [prod], labelSelector: {matchLabels: {app: web}}}"), a: whyAffinity, b: whyAffinity, d: whyAffinity},
		{name: "affinity in namespaces by label", spec: term("podAffinity", "{topologyKey: zone, namespaceSelector: {matchLabels: {team: a}}, labelSelector: {matchLabels: {app: web}}}"), d: whyAffinity},
		{name: "affinity without the label", spec: term("podAffinity", "{topologyKey: rack, labelSelector: {matchLabels: {app: web}}}"), a: whyAffinity, b: whyAffinity, d: whyAffinity},
		{name: "anti-affinity", spec: term("podAntiAffinity", "{topologyKey: zone, labelSelector: {matchLabels: {app: web}}}"), a: whyAnti, b: whyAnti},
		{name: "anti-affinity by host", spec: term("podAntiAffinity", "{topologyKey: kubernetes.io/hostname, labelSelector: {matchExpressions: [{key: app, operator: Exists}]}}"), a: whyAnti, d: whyAnti},
		{name: "anti-affinity of the others", labels: map[string]string{"app": "noisy"}, spec: tolerant, d: whyExisting},
		{name: "matchLabelKeys", labels: map[string]string{"app": "web"}, spec: term("podAntiAffinity", "{topologyKey: zone, labelSelector: {}, matchLabelKeys: [app]}"), a: whyAnti, b: whyAnti},
		{name: "mismatchLabelKeys", labels: map[string]string{"app": "web"}, spec: term("podAntiAffinity", "{topologyKey: zone, labelSelector: {}, mismatchLabelKeys: [app]}"), d: whyAnti},
		{name: "spread", labels: map[string]string{"app": "web"}, spec: tolerant + "topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]", a: whySpread, b: whySpread},
		{name: "spread with a wide skew", labels: map[string]string{"app": "web"}, spec: tolerant + "topologySpreadConstraints: [{maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]"},
		{name: "minDomains", labels: map[string]string{"app": "x"}, spec: tolerant + "topologySpreadConstraints: [{maxSkew: 1, minDomains: 3, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchExpressions: [{key: app, operator: Exists}]}}]", a: whySpread, b: whySpread, d: whySpread},
		{name: "spread over eligible nodes only", labels: map[string]string{"app": "web"}, spec: tolerant + "nodeSelector: {zone: '1'}\ntopologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]", d: selector},
		{name: "spread over all nodes", labels: map[string]string{"app": "web"}, spec: tolerant + "nodeSelector: {zone: '1'}\ntopologySpreadConstraints: [{maxSkew: 1, nodeAffinityPolicy: Ignore, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]", a: whySpread, b: whySpread, d: selector},
		{name: "spread without the label", spec: tolerant + "topologySpreadConstraints: [{maxSkew: 1, topologyKey: disk, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}]", b: whySpreadLabel, d: whySpreadLabel},
		{name: "ScheduleAnyway refuses nothing", spec: tolerant + "topologySpreadConstraints: [{maxSkew: 1, topologyKey: disk, whenUnsatisfiable: ScheduleAnyway, labelSelector: {}}]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := filterCluster(t)
			p := c.Pod(aPod(t, "p", test.labels, test.spec))
			for node, want := range map[string]string{"a": test.a, "b": test.b, "d": test.d} {
				if got := strings.Join(c.Refusals(p, node), ";"); got != want {
					t.Errorf("node %s: %q, want %q", node, got, want)
				}
			}
			// Choose must agree with the result for each node.
			node, why := c.Choose(p)
			if (why != nil) != (test.a != "" && test.b != "" && test.d != "") {
				t.Errorf("chose %q, %+v", node, why)
			}
			if why == nil && map[string]string{"a": test.a, "b": test.b, "d": test.d}[node] != "" {
				t.Errorf("chose %s, which refuses", node)
			}
		})
	}
}

func TestClosedNodes(t *testing.T) {
	c := New(1)
	cordoned := ready("cordoned", "1", "1Gi", 10, nil)
	cordoned.Spec.Unschedulable = true
	down := ready("down", "1", "1Gi", 10, nil)
	down.Status.Conditions[0].Status = corev1.ConditionFalse
	silent := ready("silent", "1", "1Gi", 10, nil)
	silent.Status.Conditions[0].Status = corev1.ConditionUnknown
	p := c.Pod(asking("p", "1", "1Gi"))
	if _, why := c.Choose(p); why == nil || why.Text != "no nodes available to schedule pods" {
		t.Errorf("without nodes: %+v", why)
	}
	for _, n := range []*corev1.Node{cordoned, down, silent} {
		c.SetNode(n)
	}
	_, why := c.Choose(p)
	if want := "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) were not ready."; why == nil || why.Text != want || why.Causes != ByClosed {
		t.Errorf("%+v, want %s", why, want)
	}
	for node, key := range map[string]string{"cordoned": corev1.TaintNodeUnschedulable, "down": corev1.TaintNodeNotReady, "silent": corev1.TaintNodeUnreachable} {
		obj := asking("p", "1", "1Gi")
		obj.Spec.Tolerations = []corev1.Toleration{{Key: key, Operator: corev1.TolerationOpExists}}
		if got, why := c.Choose(c.Pod(obj)); got != node {
			t.Errorf("tolerating %s: %q, %+v", key, got, why)
		}
	}
}

func TestRefusalCountsReasons(t *testing.T) {
	c := filterCluster(t)
	obj := asking("p", "3", "1Gi")
	_, why := c.Choose(c.Pod(obj))
	want := "0/3 nodes are available: 1 node(s) had untolerated taint {dedicated: db}, 2 Insufficient cpu."
	if why == nil || why.Text != want || why.Causes != ByFit|ByTaint {
		t.Errorf("%+v, want %s", why, want)
	}
	full := aPod(t, "q", nil, "containers: [{name: c}]")
	c.Place(c.Pod(full), "d")
	if got := c.Refusals(c.Pod(asking("r", "1m", "1")), "d"); len(got) != 1 || got[0] != whyPods {
		t.Errorf("a full node: %v", got)
	}
}

func TestTerminatingPodsAndSpread(t *testing.T) {
	c := filterCluster(t)
	const spec = "containers: [{name: c}]\ntopologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]"
	p := c.Pod(aPod(t, "p", map[string]string{"app": "web"}, spec))
	if got := c.Refusals(p, "a"); len(got) != 1 {
		t.Fatalf("%v", got)
	}
	going := aPod(t, "web", map[string]string{"app": "web"}, "{nodeName: a, containers: [{name: c}]}")
	going.DeletionTimestamp = &metav1.Time{}
	if c.Refresh(going) {
		t.Error("a pod that is being deleted counts differently")
	}
	c.Place(c.Pod(going), "a")
	if got := c.Refusals(p, "a"); len(got) != 0 {
		t.Errorf("a pod that is being deleted counts: %v", got)
	}
}

func TestDomainsFollowLabels(t *testing.T) {
	c := filterCluster(t)
	spec := "containers: [{name: c}]\naffinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchLabels: {app: web}}}]}}"
	p := c.Pod(aPod(t, "p", nil, spec))
	if got := c.Refusals(p, "d"); len(got) != 1 {
		t.Fatalf("%v", got)
	}
	if change := c.SetNode(ready("a", "2", "4Gi", 10, map[string]string{"zone": "2"})); change != Labelled|Grew {
		t.Errorf("change %b", change)
	}
	if got := c.Refusals(p, "d"); len(got) != 0 {
		t.Errorf("the pod's node moved to zone 2: %v", got)
	}
	c.RemoveNode("a")
	if got := c.Refusals(p, "d"); len(got) != 1 {
		t.Errorf("the pod's node is gone: %v", got)
	}
	if node, ok := c.Remove("uid-web"); !ok || node != "a" {
		t.Errorf("%q, %v", node, ok)
	}
}

// With matchLabelKeys, an owner without the label and one whose label is empty require different things, so they must
// not share a counter.
func TestMatchLabelKeysOfAnEmptyLabel(t *testing.T) {
	const spec = "containers: [{name: c}]\naffinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [" +
		"{topologyKey: kubernetes.io/hostname, matchLabelKeys: [hash], labelSelector: {matchLabels: {app: web}}}]}}"
	c := filterCluster(t) // a has a pod with app=web, without a hash
	if got := c.Refusals(c.Pod(aPod(t, "lacking", nil, spec)), "a"); len(got) != 1 {
		t.Errorf("without the label it is kept from any app=web: %v", got)
	}
	if got := c.Refusals(c.Pod(aPod(t, "empty", map[string]string{"hash": ""}, spec)), "a"); len(got) != 0 {
		t.Errorf("with an empty one it is kept from those with an empty one: %v", got)
	}
}
