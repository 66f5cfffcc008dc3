package scheduler

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// generator makes nodes and pods with a little of everything, few values each, so that they meet.
type generator struct{ *rand.Rand }

func pick[T any](g generator, values ...T) T { return values[g.IntN(len(values))] }

func (g generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g generator) namespaces() (out []*corev1.Namespace) {
	for _, name := range []string{"default", "prod", "test"} {
		out = append(out, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": pick(g, "a", "b")}}})
	}
	return out
}

func (g generator) node(i int) *corev1.Node {
	name := fmt.Sprintf("n%d", i)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	if g.chance(90) {
		n.Labels["zone"] = pick(g, "z1", "z2", "z3")
	}
	if g.chance(50) {
		n.Labels["disk"] = pick(g, "ssd", "hdd")
	}
	if g.chance(50) {
		n.Labels["cores"] = pick(g, "4", "8", "16", "many", "")
	}
	n.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(pick(g, "500m", "2", "4", "8")), corev1.ResourceMemory: resource.MustParse(pick(g, "1Gi", "4Gi", "16G")),
		corev1.ResourceEphemeralStorage: resource.MustParse(pick(g, "1Gi", "100Gi")), corev1.ResourcePods: resource.MustParse(pick(g, "1", "4", "110")),
	}
	if g.chance(30) {
		n.Status.Allocatable["example.com/gpu"] = resource.MustParse(pick(g, "1", "4"))
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	n.Spec.Unschedulable = g.chance(8)
	for range g.IntN(3) {
		if g.chance(40) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: pick(g, "t", "u"), Value: pick(g, "a", "b", ""),
				Effect: pick(g, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule)})
		}
	}
	return n
}

func (g generator) requests() corev1.ResourceRequirements {
	list := corev1.ResourceList{}
	if g.chance(70) {
		list[corev1.ResourceCPU] = resource.MustParse(pick(g, "0", "1m", "250m", "1", "1500m"))
	}
	if g.chance(70) {
		list[corev1.ResourceMemory] = resource.MustParse(pick(g, "0", "64Mi", "512M", "1Gi"))
	}
	if g.chance(10) {
		list[corev1.ResourceEphemeralStorage] = resource.MustParse("1Gi")
	}
	if g.chance(10) {
		list["example.com/gpu"] = resource.MustParse(pick(g, "1", "2"))
	}
	return corev1.ResourceRequirements{Requests: list}
}

func (g generator) labelSelector() *metav1.LabelSelector {
	switch g.IntN(6) {
	case 0:
		return &metav1.LabelSelector{}
	case 1:
		return nil
	case 2:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: pick(g, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)}}}
	case 3:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app",
			Operator: pick(g, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn), Values: []string{"x", "y"}}}}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": pick(g, "x", "y", "z")}}
}

func (g generator) podTerms() (out []corev1.PodAffinityTerm) {
	for range 1 + g.IntN(2) {
		t := corev1.PodAffinityTerm{LabelSelector: g.labelSelector(), TopologyKey: pick(g, "zone", "disk", corev1.LabelHostname)}
		if g.chance(15) {
			t.Namespaces = []string{pick(g, "prod", "test")}
		}
		if g.chance(20) {
			t.NamespaceSelector = pick(g, &metav1.LabelSelector{}, &metav1.LabelSelector{MatchLabels: map[string]string{"team": pick(g, "a", "b")}})
		}
		out = append(out, t)
	}
	return out
}

func (g generator) nodeTerm() (t corev1.NodeSelectorTerm) {
	if g.chance(15) {
		t.MatchFields = []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: pick(g, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn),
			Values: []string{fmt.Sprintf("n%d", g.IntN(4))}}}
	}
	for range g.IntN(3) {
		r := corev1.NodeSelectorRequirement{Key: pick(g, "zone", "disk")}
		switch g.IntN(4) {
		case 0:
			r.Operator = pick(g, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist)
		case 1:
			r.Key, r.Operator, r.Values = "cores", pick(g, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt), []string{"6"}
		default:
			r.Operator, r.Values = pick(g, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn), []string{"z1", pick(g, "ssd", "z2")}
		}
		t.MatchExpressions = append(t.MatchExpressions, r)
	}
	return t
}

func (g generator) pod(name string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pick(g, "default", "default", "prod", "test"), Name: name, UID: types.UID(name),
		Labels: map[string]string{"app": pick(g, "x", "y", "z")}}}
	if g.chance(40) {
		p.Labels["tier"] = pick(g, "front", "back")
	}
	for i := range 1 + g.IntN(2) {
		c := corev1.Container{Name: fmt.Sprintf("c%d", i), Resources: g.requests()}
		if g.chance(15) {
			c.Ports = []corev1.ContainerPort{{ContainerPort: 1, HostPort: int32(80 + g.IntN(2)), HostIP: pick(g, "", "0.0.0.0", "10.0.0.1", "10.0.0.2"),
				Protocol: pick(g, corev1.ProtocolTCP, corev1.ProtocolUDP)}}
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
	for i := range g.IntN(3) {
		if g.chance(30) {
			c := corev1.Container{Name: fmt.Sprintf("i%d", i), Resources: g.requests()}
			if g.chance(50) {
				c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
			}
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		}
	}
	if g.chance(10) {
		p.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	}
	if g.chance(15) {
		p.Spec.NodeSelector = map[string]string{"disk": pick(g, "ssd", "hdd")}
	}
	for range g.IntN(3) {
		if g.chance(40) {
			p.Spec.Tolerations = append(p.Spec.Tolerations, g.toleration())
		}
	}
	g.affinity(p)
	g.spread(p)
	return p
}

func (g generator) toleration() corev1.Toleration {
	t := corev1.Toleration{Key: pick(g, "t", "u", corev1.TaintNodeUnschedulable), Operator: pick(g, corev1.TolerationOpEqual, "", corev1.TolerationOpExists),
		Effect: pick(g, "", "", corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute)}
	if t.Operator != corev1.TolerationOpExists {
		t.Value = pick(g, "a", "b", "")
	} else if g.chance(20) {
		t.Key = ""
	}
	return t
}

func (g generator) affinity(p *corev1.Pod) {
	a := &corev1.Affinity{}
	if g.chance(20) {
		terms := []corev1.NodeSelectorTerm{g.nodeTerm()}
		if g.chance(30) {
			terms = append(terms, g.nodeTerm())
		}
		a.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}
	}
	if g.chance(25) {
		a.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: g.podTerms()}
	}
	if g.chance(25) {
		a.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: g.podTerms()}
	}
	p.Spec.Affinity = a
}

func (g generator) spread(p *corev1.Pod) {
	if !g.chance(30) {
		return
	}
	keys := []string{"zone", corev1.LabelHostname, "disk"}
	g.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for _, key := range keys[:1+g.IntN(2)] {
		c := corev1.TopologySpreadConstraint{MaxSkew: int32(1 + g.IntN(2)), TopologyKey: key, LabelSelector: g.labelSelector(),
			WhenUnsatisfiable: pick(g, corev1.DoNotSchedule, corev1.DoNotSchedule, corev1.ScheduleAnyway)}
		if c.WhenUnsatisfiable == corev1.DoNotSchedule && g.chance(20) {
			c.MinDomains = new(int32(1 + g.IntN(4)))
		}
		if g.chance(20) {
			c.NodeAffinityPolicy = new(pick(g, corev1.NodeInclusionPolicyIgnore, corev1.NodeInclusionPolicyHonor))
		}
		if g.chance(20) {
			c.NodeTaintsPolicy = new(pick(g, corev1.NodeInclusionPolicyIgnore, corev1.NodeInclusionPolicyHonor))
		}
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
	}
}
