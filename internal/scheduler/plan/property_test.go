package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// random makes nodes and pods that use a bit of everything, with few different values, so that they affect each other.
type random struct{ *rand.Rand }

func (r random) one(values ...string) string { return values[r.IntN(len(values))] }

func (r random) chance(percent int) bool { return r.IntN(100) < percent }

func (r random) node(name string) *corev1.Node {
	labels := map[string]string{}
	if r.chance(90) {
		labels["zone"] = r.one("z1", "z2", "z3")
	}
	if r.chance(50) {
		labels["disk"] = r.one("ssd", "hdd")
	}
	n := ready(name, r.one("1", "2", "4"), r.one("1Gi", "4Gi"), 1+r.IntN(8), labels)
	if r.chance(30) {
		n.Status.Allocatable["example.com/gpu"] = resource.MustParse("2")
	}
	n.Spec.Unschedulable = r.chance(10)
	if r.chance(10) {
		n.Status.Conditions[0].Status = corev1.ConditionFalse
	}
	if r.chance(20) {
		n.Spec.Taints = []corev1.Taint{{Key: "t", Value: r.one("a", "b"), Effect: corev1.TaintEffect(r.one("NoSchedule", "NoExecute", "PreferNoSchedule"))}}
	}
	return n
}

func (r random) selector() *metav1.LabelSelector {
	switch r.IntN(4) {
	case 0:
		return &metav1.LabelSelector{}
	case 1:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app",
			Operator: metav1.LabelSelectorOperator(r.one("In", "NotIn")), Values: []string{r.one("x", "y"), "z"}}}}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": r.one("x", "y", "z")}}
}

func (r random) terms() (out []corev1.PodAffinityTerm) {
	for range 1 + r.IntN(2) {
		t := corev1.PodAffinityTerm{LabelSelector: r.selector(), TopologyKey: r.one("zone", "disk", corev1.LabelHostname)}
		switch r.IntN(6) {
		case 0:
			t.Namespaces = []string{"prod"}
		case 1:
			t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": r.one("a", "b")}}
		}
		out = append(out, t)
	}
	return out
}

func (r random) pod(name string) *corev1.Pod {
	p := asking(name, r.one("100m", "500m", "1"), r.one("64Mi", "512Mi", "1Gi"))
	p.Namespace = r.one("default", "default", "prod")
	p.Labels = map[string]string{"app": r.one("x", "y", "z")}
	if r.chance(10) {
		p.Spec.Overhead = corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}
	}
	if r.chance(10) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: int32(80 + r.IntN(2)), Protocol: corev1.ProtocolTCP, HostIP: r.one("", "1.2.3.4")}}
	}
	if r.chance(20) {
		p.Spec.NodeSelector = map[string]string{"disk": r.one("ssd", "hdd")}
	}
	if r.chance(20) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: "t", Operator: corev1.TolerationOpEqual, Value: r.one("a", "b")}}
	}
	a := &corev1.Affinity{}
	if r.chance(15) {
		a.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOperator(r.one("In", "NotIn")), Values: []string{"z1"}}}}}}}
	}
	if r.chance(15) {
		a.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: r.terms()}
	}
	if r.chance(25) {
		a.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: r.terms()}
	}
	if r.chance(10) {
		a.PodAntiAffinity = &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 10, PodAffinityTerm: r.terms()[0]}}}
	}
	p.Spec.Affinity = a
	if r.chance(25) {
		for _, key := range []string{"zone", corev1.LabelHostname}[:1+r.IntN(2)] {
			c := corev1.TopologySpreadConstraint{MaxSkew: int32(1 + r.IntN(2)), TopologyKey: key, LabelSelector: r.selector(),
				WhenUnsatisfiable: corev1.UnsatisfiableConstraintAction(r.one("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"))}
			if r.chance(20) && c.WhenUnsatisfiable == corev1.DoNotSchedule {
				c.MinDomains = new(int32(1 + r.IntN(4)))
			}
			p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
		}
	}
	return p
}

// TestProperties checks that, whatever happens, Choose returns only nodes that may host the pod, and returns one if
// there is one. So no node is over-committed, no pod is where a filter refuses it, and every pod that fits somewhere
// gets a node.
func TestProperties(t *testing.T) {
	runs, steps := 60, 250
	if testing.Short() {
		runs = 10
	}
	for seed := range uint64(runs) {
		r := random{rand.New(rand.NewPCG(seed, 7))}
		c := New(seed)
		all := []Strategy{Spread, Random, RoundRobin, MinPods, MaxPods, MinCPU, MinMem}
		w := &world{nodes: map[string]*corev1.Node{}, pods: map[string]*corev1.Pod{}, space: map[string]map[string]string{}}
		setSpace := func(name, team string) {
			w.space[name] = map[string]string{"team": team}
			c.SetNamespace(name, w.space[name])
		}
		setSpace("default", "a")
		setSpace("prod", "b")
		setNode := func(name string) {
			w.nodes[name] = r.node(name)
			c.SetNode(w.nodes[name])
		}
		for i := range 6 {
			setNode(fmt.Sprintf("n%d", i))
		}
		for step := range steps {
			switch name := fmt.Sprintf("n%d", r.IntN(12)); r.IntN(20) {
			case 0, 1:
				setNode(name)
				continue
			case 2:
				delete(w.nodes, name)
				c.RemoveNode(name)
				continue
			case 3:
				setSpace(r.one("default", "prod"), r.one("a", "b"))
				continue
			case 4, 5, 6, 7:
				for name, p := range w.pods { // any pod
					delete(w.pods, name)
					if node, ok := c.Remove(p.UID); !ok || node != p.Spec.NodeName {
						t.Fatalf("seed %d: pod %s was on %q, %v", seed, name, node, ok)
					}
					break
				}
				continue
			case 8:
				c.SetStrategy(all[r.IntN(len(all))])
				continue
			case 9: // a new state of an existing pod
				for name, p := range w.pods {
					next := p.DeepCopy()
					next.Labels["app"] = r.one("x", "y", "z")
					if r.chance(20) {
						next.DeletionTimestamp = &metav1.Time{}
					}
					w.pods[name] = next
					if !c.Refresh(next) {
						c.Place(c.Pod(next), next.Spec.NodeName)
					}
					break
				}
				continue
			case 10:
				c.SetUsage(name, int64(r.IntN(4000)), int64(r.IntN(4<<30)))
				continue
			}
			obj := r.pod(fmt.Sprintf("p%d", step))
			p := c.Pod(obj)
			var may []string
			for name, n := range w.nodes {
				ok := w.mayHost(obj, n)
				if ok {
					may = append(may, name)
				}
				if got := c.Refusals(p, name); (len(got) == 0) != ok {
					t.Fatalf("seed %d, step %d: node %s: reasons %q, and it may host the pod: %v", seed, step, name, got, ok)
				}
			}
			node, why := c.Choose(p)
			if why != nil {
				if len(may) > 0 {
					t.Fatalf("seed %d, step %d: refused by all, though %v would do: %s", seed, step, may, why.Text)
				}
				continue
			}
			if !slices.Contains(may, node) {
				t.Fatalf("seed %d, step %d: chose %s, and only %v may host the pod", seed, step, node, may)
			}
			c.Place(p, node)
			bound := obj.DeepCopy()
			bound.Spec.NodeName = node
			w.pods[obj.Name] = bound
			if r.chance(70) && !c.Refresh(bound) {
				t.Fatalf("seed %d, step %d: the binding of an assumed pod is news", seed, step)
			}
		}
		c.mustBeEmptyAfter(t, w)
	}
}

// mustBeEmptyAfter removes everything and checks that nothing is left over.
func (c *Cluster) mustBeEmptyAfter(t *testing.T, w *world) {
	t.Helper()
	var uids []types.UID
	for uid := range c.pods {
		uids = append(uids, uid)
	}
	if len(uids) != len(w.pods) {
		t.Errorf("%d pods count, there are %d", len(uids), len(w.pods))
	}
	for _, uid := range uids {
		c.Remove(uid)
	}
	for _, n := range c.byName {
		for id, left := range n.used {
			if left != 0 {
				t.Errorf("node %s: %d of resource %d is left", n.name, left, id)
			}
		}
		if len(n.pods)+len(n.ports) > 0 || n.load != [2]int64{} {
			t.Errorf("node %s is not empty", n.name)
		}
	}
	for _, ct := range c.counters {
		if ct.owned != 0 || ct.tracked && ct.total != 0 {
			t.Errorf("counter %s: %d owners, %d pods", ct.key, ct.owned, ct.total)
		}
		for _, n := range ct.owners {
			if n != 0 {
				t.Errorf("counter %s has owners left", ct.key)
			}
		}
	}
}
