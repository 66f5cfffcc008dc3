package why

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api/placement"
	"minik8s/internal/ctl/brief"
)

// A pod may have no node because of pods that have one. This file finds those pods.

// takenPorts names the host ports that are in use, and the pods that use them.
func (s *situation) takenPorts(v *Explanation, pod *corev1.Pod, by placement.Refused) {
	for _, name := range by.Nodes {
		for _, t := range s.portsTaken(pod, name) {
			v.because("host port %d/%s of node %s is taken by pod %s", t.port.Port, t.port.Protocol, name, fullName(t.by))
			v.try("describe pod %s%s", t.by.Name, brief.Namespace(t.by.Namespace))
		}
	}
	v.advise("ask for another hostPort, or for none; or delete the pod that has it")
}

// taken is a port that a pod wants, and the pod that has it.
type taken struct {
	port placement.Port
	by   *corev1.Pod
}

func (s *situation) portsTaken(pod *corev1.Pod, node string) []taken {
	var out []taken
	for _, want := range placement.HostPorts(&pod.Spec) {
		for _, p := range s.placed {
			if p.Spec.NodeName == node && slices.ContainsFunc(placement.HostPorts(&p.Spec), want.Clashes) {
				out = append(out, taken{want, p})
				break
			}
		}
	}
	return out
}

func fullName(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// missedPods tells which pods the pod must be with. A pod counts only if all the terms select it.
func (s *situation) missedPods(v *Explanation, pod *corev1.Pod, _ placement.Refused) {
	terms := termsOf(placement.RequiredAffinity(&pod.Spec), pod)
	var all []placement.PodSelector
	for i := range terms {
		all = append(all, terms[i].PodSelector)
	}
	where := "there is none that has a node"
	if found := s.chosen(all...); len(found) > 0 {
		where = "there are: " + onNodes(found)
	}
	for i := range terms {
		t := &terms[i]
		v.because("its podAffinity wants %s in the same %s; %s", t, t.topology, where)
		v.try("get pods -l '%s' -o wide%s", t.Labels, t.flag())
	}
}

// avoidedPods tells which pods the pod must be apart from.
func (s *situation) avoidedPods(v *Explanation, pod *corev1.Pod, _ placement.Refused) {
	for _, t := range termsOf(placement.RequiredAntiAffinity(&pod.Spec), pod) {
		found := s.chosen(t.PodSelector)
		if len(found) == 0 {
			v.because("its podAntiAffinity keeps it from any %s with %s", t.topology, &t)
			continue
		}
		v.because("its podAntiAffinity keeps it from any %s with %s; in the way: %s", t.topology, &t, onNodes(found))
		v.try("describe pod %s%s", found[0].Name, brief.Namespace(found[0].Namespace))
	}
	v.advise("add a node, make room by deleting or scaling down what is in the way, or prefer instead of require it: preferredDuringSchedulingIgnoredDuringExecution")
}

// avoidingPods tells which pods must be apart from the pod.
func (s *situation) avoidingPods(v *Explanation, pod *corev1.Pod, _ placement.Refused) {
	told := 0
	for _, p := range s.placed {
		for _, t := range termsOf(placement.RequiredAntiAffinity(&p.Spec), p) {
			if told < mostNamed && t.Matches(pod, s.namespaces) {
				told++
				v.because("the podAntiAffinity of pod %s on %s keeps pods with %s from its %s", fullName(p), p.Spec.NodeName, labelled(t.Labels), t.topology)
				v.try("describe pod %s%s", p.Name, brief.Namespace(p.Namespace))
			}
		}
	}
}

// term is a term of pod affinity: which pods, and in which topology domain.
type term struct {
	placement.PodSelector
	topology string
	home     string // the namespace of the pod that has the term
}

func termsOf(list []corev1.PodAffinityTerm, owner *corev1.Pod) []term {
	var out []term
	for i := range list {
		out = append(out, term{placement.TermSelector(&list[i], owner), list[i].TopologyKey, owner.Namespace})
	}
	return out
}

// String describes the pods that a term selects: "a pod with app=web of a namespace with team=a".
func (t *term) String() string {
	text := "a pod with " + labelled(t.Labels)
	var places []string
	if len(t.Namespaces) > 0 && !slices.Equal(t.Namespaces, []string{t.home}) {
		places = append(places, "namespace "+strings.Join(t.Namespaces, ", "))
	}
	switch {
	case t.NamespaceLabels == nil:
	case t.NamespaceLabels.Empty():
		places = []string{"any namespace"}
	default:
		places = append(places, "a namespace with "+labelled(t.NamespaceLabels))
	}
	if len(places) == 0 {
		return text
	}
	return text + " of " + strings.Join(places, " or ")
}

// flag returns the flag with which a command finds the pods of a term.
func (t *term) flag() string {
	if t.NamespaceLabels == nil && len(t.Namespaces) == 1 {
		return brief.Namespace(t.Namespaces[0])
	}
	return " -A"
}

// chosen returns the pods with a node that all the selectors select.
func (s *situation) chosen(selectors ...placement.PodSelector) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range s.placed {
		if placement.AllMatch(selectors, p, s.namespaces) {
			out = append(out, p)
		}
	}
	return out
}

// labelled returns a label selector as text.
func labelled(selector labels.Selector) string {
	if _, selectable := selector.Requirements(); !selectable {
		return "no labels at all (without a labelSelector no pod is chosen)"
	}
	if selector.Empty() {
		return "any labels"
	}
	return selector.String()
}

// onNodes names some pods and their nodes.
func onNodes(pods []*corev1.Pod) string {
	var names []string
	for _, p := range pods {
		names = append(names, fullName(p)+" on "+p.Spec.NodeName)
	}
	return someOf(names, len(names))
}

// unevenSpread tells how the pods that a constraint counts are spread now.
func (s *situation) unevenSpread(v *Explanation, pod *corev1.Pod, _ placement.Refused) {
	constraints := pod.Spec.TopologySpreadConstraints
	rules := make([]placement.SpreadRule, len(constraints))
	for i := range constraints {
		rules[i] = placement.SpreadRuleOf(&constraints[i])
	}
	for i := range rules {
		r, selector := &rules[i], placement.SpreadSelector(&constraints[i], pod)
		if !r.Required {
			continue
		}
		in, outside := s.spread(pod, rules, r, &selector)
		v.because("its topologySpreadConstraints let the pods with %s differ by %d from %s to %s; now: %s",
			labelled(selector.Labels), r.MaxSkew, r.TopologyKey, r.TopologyKey, counts(in))
		if len(in) < int(r.MinDomains) && len(in) > 0 {
			v.because("minDomains asks for %d of %s that it could go to: as long as there are fewer, each may have %d at most", r.MinDomains, r.TopologyKey, r.MaxSkew)
		}
		if len(outside) > 0 {
			v.because("nodes without the label %s, which cannot take it: %s", r.TopologyKey, someOf(outside, len(outside)))
			v.try("label nodes %s %s=VALUE", outside[0], r.TopologyKey)
		}
	}
	v.advise("make room where there are fewest, raise maxSkew, or prefer instead of require it: whenUnsatisfiable: ScheduleAnyway")
	v.try("describe nodes")
}

// spread counts, by domain, the pods that one of a pod's rules counts. It also returns the nodes without a domain.
func (s *situation) spread(pod *corev1.Pod, rules []placement.SpreadRule, r *placement.SpreadRule, selector *placement.PodSelector) (in map[string]int, outside []string) {
	in = map[string]int{}
	for _, n := range s.nodes {
		domain, ok := n.Labels[r.TopologyKey]
		if !ok {
			outside = append(outside, n.Name)
			continue
		}
		selected, tolerated := placement.Selects(&pod.Spec, n), placement.Untolerated(pod.Spec.Tolerations, n.Spec.Taints) < 0
		if !r.CountsNode(selected, tolerated, placement.InAllDomains(rules, n)) {
			continue
		}
		in[domain] += 0
		for _, p := range s.placed {
			if p.Spec.NodeName == n.Name && placement.CountsPods(selector) && selector.Matches(p, s.namespaces) {
				in[domain]++
			}
		}
	}
	return in, outside
}

// counts returns the numbers of pods per domain as text.
func counts(in map[string]int) string {
	var parts []string
	for _, domain := range slices.Sorted(maps.Keys(in)) {
		parts = append(parts, fmt.Sprintf("%s %d", domain, in[domain]))
	}
	if len(parts) == 0 {
		return "there is none that it could go to"
	}
	return strings.Join(parts, ", ")
}
