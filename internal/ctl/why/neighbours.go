package why

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api/placement"
	"minik8s/internal/ctl/brief"
)

// A pod may have no node because of pods that have one. This file finds them.

// takenPorts names the host ports that are taken, and by whom.
func (s *situation) takenPorts(v *Explanation, pod *corev1.Pod) {
	for _, n := range s.nodes {
		for _, t := range s.portsTaken(pod, n) {
			v.because("host port %d/%s of node %s is taken by pod %s", t.port.HostPort, placement.Protocol(t.port), n.Name, fullName(t.by))
			v.try("describe pod %s%s", t.by.Name, brief.Namespace(t.by.Namespace))
		}
	}
	v.advise("ask for another hostPort, or for none; or delete the pod that has it")
}

// taken is a port that a pod wants, and who has it.
type taken struct {
	port corev1.ContainerPort
	by   *corev1.Pod
}

func (s *situation) portsTaken(pod *corev1.Pod, node *corev1.Node) []taken {
	var out []taken
	for _, want := range hostPorts(pod) {
		for _, p := range s.placed {
			if p.Spec.NodeName == node.Name && slices.ContainsFunc(hostPorts(p), func(has corev1.ContainerPort) bool { return placement.PortsClash(want, has) }) {
				out = append(out, taken{want, p})
				break
			}
		}
	}
	return out
}

func hostPorts(pod *corev1.Pod) []corev1.ContainerPort {
	var out []corev1.ContainerPort
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, p := range c.Ports {
			if p.HostPort != 0 {
				out = append(out, p)
			}
		}
	}
	return out
}

func fullName(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// missedPods tells which pods the pod wants to be with.
func (s *situation) missedPods(v *Explanation, pod *corev1.Pod) {
	for _, t := range affinity(pod) {
		found := s.chosen(&t, pod)
		where := "there is none that has a node"
		if len(found) > 0 {
			where = "there are: " + onNodes(found)
		}
		v.because("its podAffinity wants a pod with %s in the same %s; %s", labelled(t.LabelSelector), t.TopologyKey, where)
		flag := " -A"
		if where := namespacesOf(&t, pod); len(where) == 1 {
			flag = brief.Namespace(where[0])
		}
		v.try("get pods -l '%s' -o wide%s", metav1.FormatLabelSelector(t.LabelSelector), flag)
	}
}

// avoidedPods tells which pods the pod wants to be apart from.
func (s *situation) avoidedPods(v *Explanation, pod *corev1.Pod) {
	for _, t := range antiAffinity(pod) {
		found := s.chosen(&t, pod)
		if len(found) == 0 {
			v.because("its podAntiAffinity keeps it from any %s with a pod with %s", t.TopologyKey, labelled(t.LabelSelector))
			continue
		}
		v.because("its podAntiAffinity keeps it from any %s with a pod with %s; in the way: %s", t.TopologyKey, labelled(t.LabelSelector), onNodes(found))
		v.try("describe pod %s%s", found[0].Name, brief.Namespace(found[0].Namespace))
	}
	v.advise("add a node, make room by deleting or scaling down what is in the way, or prefer instead of require it: preferredDuringSchedulingIgnoredDuringExecution")
}

// avoidingPods tells which pods want to be apart from the pod.
func (s *situation) avoidingPods(v *Explanation, pod *corev1.Pod) {
	told := 0
	for _, p := range s.placed {
		for _, t := range antiAffinity(p) {
			if told < mostNamed && picks(&t, p, pod) {
				told++
				v.because("the podAntiAffinity of pod %s on %s keeps pods with %s from its %s", fullName(p), p.Spec.NodeName, labelled(t.LabelSelector), t.TopologyKey)
				v.try("describe pod %s%s", p.Name, brief.Namespace(p.Namespace))
			}
		}
	}
}

// apart are the pods for which a pod may not be on a node: it keeps away from them, or they from it.
func (s *situation) apart(pod *corev1.Pod, node *corev1.Node) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range s.placed {
		mine := slices.ContainsFunc(antiAffinity(pod), func(t corev1.PodAffinityTerm) bool { return picks(&t, pod, p) && s.beside(&t, p, node) })
		if mine || slices.ContainsFunc(antiAffinity(p), func(t corev1.PodAffinityTerm) bool { return picks(&t, p, pod) && s.beside(&t, p, node) }) {
			out = append(out, p)
		}
	}
	return out
}

// together says whether the pods that a pod wants to be with are beside a node; the first of its kind, which
// wants to be with its like, need not wait for them.
func (s *situation) together(pod *corev1.Pod, node *corev1.Node) bool {
	return !slices.ContainsFunc(affinity(pod), func(t corev1.PodAffinityTerm) bool {
		found := s.chosen(&t, pod)
		first := len(found) == 0 && picks(&t, pod, pod)
		return !first && !slices.ContainsFunc(found, func(p *corev1.Pod) bool { return s.beside(&t, p, node) })
	})
}

// beside says whether a pod's node is in the same domain of a term as another node.
func (s *situation) beside(t *corev1.PodAffinityTerm, pod *corev1.Pod, node *corev1.Node) bool {
	domain, ok := node.Labels[t.TopologyKey]
	theirs := s.node(pod.Spec.NodeName)
	return ok && theirs != nil && theirs.Labels[t.TopologyKey] == domain
}

func affinity(pod *corev1.Pod) []corev1.PodAffinityTerm {
	if a := pod.Spec.Affinity; a != nil && a.PodAffinity != nil {
		return readable(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, pod)
	}
	return nil
}

func antiAffinity(pod *corev1.Pod) []corev1.PodAffinityTerm {
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		return readable(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, pod)
	}
	return nil
}

// readable are terms whose selectors say all that they ask for.
func readable(terms []corev1.PodAffinityTerm, owner *corev1.Pod) []corev1.PodAffinityTerm {
	out := slices.Clone(terms)
	for i := range out {
		out[i].LabelSelector = narrowed(out[i].LabelSelector, owner, out[i].MatchLabelKeys, out[i].MismatchLabelKeys)
	}
	return out
}

func (s *situation) chosen(t *corev1.PodAffinityTerm, owner *corev1.Pod) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range s.placed {
		if picks(t, owner, p) {
			out = append(out, p)
		}
	}
	return out
}

// picks says whether a term of the owner chooses a pod. Where namespaces are chosen by their labels, which
// are not known here, only those that are named count.
func picks(t *corev1.PodAffinityTerm, owner, pod *corev1.Pod) bool {
	everywhere := t.NamespaceSelector != nil && len(t.NamespaceSelector.MatchLabels)+len(t.NamespaceSelector.MatchExpressions) == 0
	return (everywhere || slices.Contains(namespacesOf(t, owner), pod.Namespace)) && selects(t.LabelSelector, pod)
}

func namespacesOf(t *corev1.PodAffinityTerm, owner *corev1.Pod) []string {
	if len(t.Namespaces) == 0 && t.NamespaceSelector == nil {
		return []string{owner.Namespace}
	}
	return t.Namespaces
}

func selects(selector *metav1.LabelSelector, pod *corev1.Pod) bool {
	l, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && l.Matches(labels.Set(pod.Labels))
}

// labelled is a selector for people.
func labelled(selector *metav1.LabelSelector) string {
	if selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return "any labels"
	}
	return metav1.FormatLabelSelector(selector)
}

// narrowed is a selector with what matchLabelKeys and mismatchLabelKeys add to it from the owner's labels.
func narrowed(selector *metav1.LabelSelector, owner *corev1.Pod, match, mismatch []string) *metav1.LabelSelector {
	if selector == nil || len(match)+len(mismatch) == 0 {
		return selector
	}
	out := selector.DeepCopy()
	for i, key := range slices.Concat(match, mismatch) {
		op := metav1.LabelSelectorOpIn
		if i >= len(match) {
			op = metav1.LabelSelectorOpNotIn
		}
		if value, ok := owner.Labels[key]; ok {
			out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{Key: key, Operator: op, Values: []string{value}})
		}
	}
	return out
}

// onNodes names a few pods and where they are.
func onNodes(pods []*corev1.Pod) string {
	var names []string
	for _, p := range pods {
		names = append(names, fullName(p)+" on "+p.Spec.NodeName)
	}
	return someOf(names)
}

// unevenSpread tells how the pods that a constraint counts are spread now.
func (s *situation) unevenSpread(v *Explanation, pod *corev1.Pod) {
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == corev1.ScheduleAnyway {
			continue
		}
		c.LabelSelector = narrowed(c.LabelSelector, pod, c.MatchLabelKeys, nil)
		counts, outside := s.spread(&c, pod)
		v.because("its topologySpreadConstraints let the pods with %s differ by %d from %s to %s; now: %s",
			labelled(c.LabelSelector), c.MaxSkew, c.TopologyKey, c.TopologyKey, counts)
		if len(outside) > 0 {
			v.because("nodes without the label %s, which cannot take it: %s", c.TopologyKey, someOf(outside))
			v.try("label nodes %s %s=VALUE", outside[0], c.TopologyKey)
		}
	}
	v.advise("make room where there are fewest, raise maxSkew, or prefer instead of require it: whenUnsatisfiable: ScheduleAnyway")
	v.try("describe nodes")
}

// spread counts a constraint's pods by domain, and names the nodes that are in none.
func (s *situation) spread(c *corev1.TopologySpreadConstraint, pod *corev1.Pod) (counts string, outside []string) {
	in := map[string]int{}
	for _, n := range s.nodes {
		domain, ok := n.Labels[c.TopologyKey]
		switch {
		case !ok:
			outside = append(outside, n.Name)
		case placement.Selects(&pod.Spec, n): // others do not count: the pod could not go there
			in[domain] += 0
			for _, p := range s.placed {
				if p.Spec.NodeName == n.Name && p.Namespace == pod.Namespace && p.DeletionTimestamp == nil && selects(c.LabelSelector, p) {
					in[domain]++
				}
			}
		}
	}
	var parts []string
	for _, domain := range slices.Sorted(maps.Keys(in)) {
		parts = append(parts, fmt.Sprintf("%s %d", domain, in[domain]))
	}
	if len(parts) == 0 {
		return "there is none that it could go to", outside
	}
	return strings.Join(parts, ", "), outside
}
