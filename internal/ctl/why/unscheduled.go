package why

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/placement"
	"minik8s/internal/ctl/brief"
)

// podUnscheduled explains why no node took a pod. The scheduler has recorded which filter refused which nodes
// (placement.Refusals); this explains each filter, with the labels, taints and pods involved.
func (s *situation) podUnscheduled(pod *corev1.Pod) Explanation {
	if len(pod.Spec.SchedulingGates) > 0 {
		return s.gated(pod)
	}
	v := Explanation{Head: s.name() + " is Pending: no node has it yet"}
	text := s.refusal(pod)
	if other := pod.Spec.SchedulerName; text == "" && other != "" && other != corev1.DefaultSchedulerName {
		v.because("it asks for the scheduler %q, and there is only %q here", other, corev1.DefaultSchedulerName)
		v.advise("take schedulerName out of the manifest and create the pod anew")
		return v
	}
	if text == "" {
		v.because("the scheduler has not said anything about it; is a master running?")
		v.try("get events%s", brief.Namespace(pod.Namespace))
		return v
	}
	v.because("%s", text)
	if len(s.nodes) == 0 {
		v.because("there is no node at all")
		v.advise("start the daemon with a worker: minik8sd --role=master,worker")
		return v
	}
	refusals := placement.RefusalsOf(pod)
	for _, by := range []struct {
		code placement.Code
		tell func(*Explanation, *corev1.Pod, placement.Refused)
	}{
		{placement.Closed, s.closedNodes}, {placement.NodeLabels, s.unlikeNodes}, {placement.Taint, s.taintedNodes}, {placement.HostPort, s.takenPorts},
		{placement.Resources, s.fullNodes}, {placement.PodAffinity, s.missedPods}, {placement.PodAntiAffinity, s.avoidedPods},
		{placement.OthersAntiAffinity, s.avoidingPods}, {placement.Spread, s.unevenSpread},
	} {
		if r, ok := refusals[by.code]; ok {
			by.tell(&v, pod, r)
		}
	}
	if len(v.Next) == 0 {
		v.try("describe nodes")
	}
	return v
}

// gated explains a pod that is not scheduled until its gates are removed.
func (s *situation) gated(pod *corev1.Pod) Explanation {
	v := Explanation{Head: s.name() + " is Pending: scheduling gates hold it, and the scheduler does not look at it yet"}
	for _, g := range pod.Spec.SchedulingGates {
		v.because("the gate %s: whoever put it there takes it away when the pod may start", g.Name)
	}
	v.advise(`to take the first gate (%s) away by hand: kubectl patch pod %s%s --type=json -p '[{"op":"remove","path":"/spec/schedulingGates/0"}]'`,
		pod.Spec.SchedulingGates[0].Name, pod.Name, brief.Namespace(pod.Namespace))
	return v
}

// refusal returns the scheduler's last message about a pod.
func (s *situation) refusal(pod *corev1.Pod) string {
	if c := brief.PodCondition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
		return c.Message
	}
	if e := s.lastWarning("FailedScheduling"); e != nil {
		return e.Message
	}
	return ""
}

func (s *situation) closedNodes(v *Explanation, _ *corev1.Pod, by placement.Refused) {
	var cordoned, lost []string
	for _, name := range by.Nodes {
		if n := s.node(name); n != nil && n.Spec.Unschedulable {
			cordoned = append(cordoned, name)
		} else {
			lost = append(lost, name)
		}
	}
	if len(lost) > 0 {
		v.because("not ready: %s", someOf(lost, by.Count-len(cordoned)))
		v.try("why node %s", lost[0])
	}
	if len(cordoned) > 0 {
		v.because("cordoned: %s", someOf(cordoned, by.Count-len(lost)))
		v.try("uncordon %s", cordoned[0])
	}
}

func (s *situation) fullNodes(v *Explanation, _ *corev1.Pod, _ placement.Refused) {
	v.advise("ask for less in the containers' resources.requests, or make room: minik8sd ctl describe nodes shows who has what")
}

// someOf names some of the items, and counts the rest.
func someOf(names []string, all int) string {
	few := names[:min(len(names), mostNamed)]
	switch more := all - len(few); {
	case more == 1 && len(names) > len(few):
		few = names[:len(few)+1]
	case more > 0:
		return fmt.Sprintf("%s and %d more", strings.Join(few, ", "), more)
	}
	return strings.Join(few, ", ")
}

// unlikeNodes explains nodes that do not match nodeSelector and node affinity, and which of them would fit with another
// label.
func (s *situation) unlikeNodes(v *Explanation, pod *corev1.Pod, by placement.Refused) {
	all := by.Count == len(s.nodes)
	v.because("%s", noMatch(all, askedOfNode(&pod.Spec), someOf(by.Nodes, by.Count)))
	for _, name := range by.OnlyLabels {
		node := s.node(name)
		if node == nil {
			continue
		}
		if labels := lacking(&pod.Spec, node); labels != nil {
			v.try("label nodes %s %s", name, strings.Join(setting(node, labels), " "))
			return
		}
	}
	if all {
		v.advise("ask for what a node is, in nodeSelector and affinity; no label alone would make a node fit")
		v.try("describe nodes")
	}
}

// noMatch says in one line which nodes do not match.
func noMatch(all bool, asked, unlike string) string {
	if all {
		return "no node matches " + asked
	}
	return fmt.Sprintf("nodes that do not match %s: %s", asked, unlike)
}

// askedOfNode returns what a pod requires of a node's labels: "disk=ssd and zone In (a, b)".
func askedOfNode(spec *corev1.PodSpec) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(spec.NodeSelector)) {
		parts = append(parts, key+"="+spec.NodeSelector[key])
	}
	var terms []string
	required, _ := placement.RequiredTerms(spec)
	for _, t := range required {
		var term []string
		for _, e := range slices.Concat(t.MatchExpressions, t.MatchFields) {
			text := e.Key + " " + string(e.Operator)
			if len(e.Values) > 0 {
				text += " (" + strings.Join(e.Values, ", ") + ")"
			}
			term = append(term, text)
		}
		terms = append(terms, strings.Join(term, " and "))
	}
	if len(terms) > 0 {
		parts = append(parts, strings.Join(terms, ", or "))
	}
	return strings.Join(parts, " and ")
}

// itsOwn are labels that a node reports about itself. Other values would be wrong, and would be overwritten.
var itsOwn = []string{corev1.LabelHostname, corev1.LabelOSStable, corev1.LabelArchStable}

// lacking returns the labels that would make a node match; nil if no labels would.
func lacking(spec *corev1.PodSpec, node *corev1.Node) map[string]string {
	terms, _ := placement.RequiredTerms(spec)
	if len(terms) == 0 {
		terms = []corev1.NodeSelectorTerm{{}}
	}
	for _, t := range terms {
		want := maps.Clone(spec.NodeSelector)
		if want == nil {
			want = map[string]string{}
		}
		for _, e := range t.MatchExpressions {
			switch {
			case e.Operator == corev1.NodeSelectorOpExists:
				want[e.Key] = "true"
			case e.Operator == corev1.NodeSelectorOpIn && len(e.Values) > 0:
				want[e.Key] = e.Values[0]
			}
		}
		maps.DeleteFunc(want, func(k, v string) bool { return node.Labels[k] == v })
		if slices.ContainsFunc(itsOwn, func(key string) bool { _, ok := want[key]; return ok }) {
			continue
		}
		like := node.DeepCopy()
		like.Labels = maps.Clone(want)
		for key, value := range node.Labels {
			if _, changes := want[key]; !changes {
				like.Labels[key] = value
			}
		}
		if placement.Selects(spec, like) {
			return want
		}
	}
	return nil
}

// setting returns the arguments for `label`. Changing an existing label needs a flag.
func setting(node *corev1.Node, labels map[string]string) []string {
	var words []string
	changes := false
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		words = append(words, key+"="+labels[key])
		_, has := node.Labels[key]
		changes = changes || has
	}
	if changes {
		words = append(words, "--overwrite")
	}
	return words
}

// taintedNodes names the taints that the pod does not tolerate, and what it would need.
func (s *situation) taintedNodes(v *Explanation, pod *corev1.Pod, by placement.Refused) {
	said := map[string]bool{}
	for _, name := range by.Nodes {
		n := s.node(name)
		if n == nil {
			continue
		}
		i := placement.Untolerated(pod.Spec.Tolerations, n.Spec.Taints)
		if i < 0 {
			continue // it has been removed since
		}
		taint := &n.Spec.Taints[i]
		if said[taint.ToString()] {
			continue
		}
		said[taint.ToString()] = true
		v.because("node %s has the taint %s, which the pod does not tolerate", n.Name, taint.ToString())
		if strings.HasPrefix(taint.Key, "node.kubernetes.io/") {
			v.try("why node %s", n.Name) // a taint of the system, which goes away when the node is well
			continue
		}
		v.advise("%s", tolerance(n.Name, taint))
		v.try("describe node %s", n.Name)
	}
}

// tolerance returns what to do about a taint: on the pod, or on the node.
func tolerance(node string, taint *corev1.Taint) string {
	operator := "operator: Exists"
	if taint.Value != "" {
		operator = "operator: Equal, value: " + taint.Value
	}
	return fmt.Sprintf("tolerate it, in spec.tolerations of the pod: {key: %s, %s, effect: %s}; or take it off: kubectl taint nodes %s %s-",
		taint.Key, operator, taint.Effect, node, taint.ToString())
}
