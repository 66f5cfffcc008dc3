package why

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/placement"
	"minik8s/internal/api/podspec"
	"minik8s/internal/ctl/brief"
)

// podUnscheduled tells why no node took a pod. The scheduler counts its reasons and names neither nodes nor
// pods; so each reason that it gives is looked for among those that are there.
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
	s.closedNodes(&v)
	for _, reason := range []struct {
		word string
		tell func(*Explanation, *corev1.Pod)
	}{
		{"affinity/selector", s.unlikeNodes}, {"taint", s.taintedNodes}, {"free ports", s.takenPorts}, {"insufficient", s.fullNodes},
		{"too many pods", s.fullNodes}, {"pod affinity rules", s.missedPods}, {"pod anti-affinity rules", s.avoidedPods},
		{"existing pods anti-affinity", s.avoidingPods}, {"topology spread", s.unevenSpread},
	} {
		if strings.Contains(strings.ToLower(text), reason.word) {
			reason.tell(&v, pod)
		}
	}
	if len(v.Next) == 0 {
		v.try("describe nodes")
	}
	return v
}

// gated is a pod that nobody places before its gates are taken away.
func (s *situation) gated(pod *corev1.Pod) Explanation {
	v := Explanation{Head: s.name() + " is Pending: scheduling gates hold it, and the scheduler does not look at it yet"}
	for _, g := range pod.Spec.SchedulingGates {
		v.because("the gate %s: whoever put it there takes it away when the pod may start", g.Name)
	}
	v.advise(`to take the first gate (%s) away by hand: kubectl patch pod %s%s --type=json -p '[{"op":"remove","path":"/spec/schedulingGates/0"}]'`,
		pod.Spec.SchedulingGates[0].Name, pod.Name, brief.Namespace(pod.Namespace))
	return v
}

// refusal is what the scheduler said of a pod last.
func (s *situation) refusal(pod *corev1.Pod) string {
	if c := brief.PodCondition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
		return c.Message
	}
	if e := s.lastWarning("FailedScheduling"); e != nil {
		return e.Message
	}
	return ""
}

func (s *situation) closedNodes(v *Explanation) {
	var closed, lost []string
	for _, n := range s.nodes {
		if n.Spec.Unschedulable {
			closed = append(closed, n.Name)
		}
		if !isReady(n) {
			lost = append(lost, n.Name)
		}
	}
	if len(lost) > 0 {
		v.because("not ready: %s", someOf(lost))
		v.try("why node %s", lost[0])
	}
	if len(closed) > 0 {
		v.because("cordoned: %s", someOf(closed))
		v.try("uncordon %s", closed[0])
	}
}

func (s *situation) fullNodes(v *Explanation, _ *corev1.Pod) {
	v.advise("ask for less in the containers' resources.requests, or make room: minik8sd ctl describe nodes shows who has what")
}

// someOf names a few and counts the rest.
func someOf(names []string) string {
	if more := len(names) - mostNamed; more > 1 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}

// unlikeNodes tells of the nodes that nodeSelector and node affinity do not take, and which of them a
// label would make fit.
func (s *situation) unlikeNodes(v *Explanation, pod *corev1.Pod) {
	var unlike []string
	helped := false
	for _, n := range s.nodes {
		if placement.Selects(&pod.Spec, n) {
			continue
		}
		unlike = append(unlike, n.Name)
		if labels := lacking(&pod.Spec, n); !helped && labels != nil && s.hasRoom(pod, n) {
			helped = true
			v.try("label nodes %s %s", n.Name, strings.Join(setting(n, labels), " "))
		}
	}
	v.because("%s", noMatch(len(unlike) == len(s.nodes), askedOfNode(&pod.Spec), unlike))
	if !helped && len(unlike) == len(s.nodes) {
		v.advise("ask for what a node is, in nodeSelector and affinity; no label alone would make a node fit")
		v.try("describe nodes")
	}
}

// noMatch says in one line which nodes are not what is asked for.
func noMatch(all bool, asked string, unlike []string) string {
	if all {
		return "no node matches " + asked
	}
	return fmt.Sprintf("nodes that do not match %s: %s", asked, someOf(unlike))
}

// askedOfNode is what a pod asks of a node's labels: "disk=ssd and zone In (a, b)".
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

// itsOwn are the labels that a node reports of itself: to set others would be a lie, and would not last.
var itsOwn = []string{corev1.LabelHostname, corev1.LabelOSStable, corev1.LabelArchStable}

// lacking are the labels with which a node would be one that the pod asks for; nil if none would do.
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

// setting are the words for label: a label that has another value needs a flag to be changed.
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

// hasRoom says whether nothing but labels keeps a pod from a node, as far as can be told simply.
func (s *situation) hasRoom(pod *corev1.Pod, node *corev1.Node) bool {
	return isReady(node) && !node.Spec.Unschedulable && placement.Untolerated(pod.Spec.Tolerations, node.Spec.Taints) < 0 &&
		s.fits(pod, node) && len(s.portsTaken(pod, node)) == 0 && len(s.apart(pod, node)) == 0 && s.together(pod, node)
}

// fits says whether what the containers ask for is free on a node.
func (s *situation) fits(pod *corev1.Pod, node *corev1.Node) bool {
	own := podspec.Requests(&pod.Spec)
	asked, pods := maps.Clone(own), int64(1)
	for _, p := range s.placed {
		if p.Spec.NodeName == node.Name {
			pods++
			for name, n := range podspec.Requests(&p.Spec) {
				asked[name] += n
			}
		}
	}
	if most, ok := node.Status.Allocatable[corev1.ResourcePods]; ok && pods > most.Value() {
		return false
	}
	for name := range own {
		if asked[name] > podspec.Amount(name, node.Status.Allocatable[name]) {
			return false
		}
	}
	return true
}

// taintedNodes names the taints that the pod does not tolerate, and what it would need.
func (s *situation) taintedNodes(v *Explanation, pod *corev1.Pod) {
	said := map[string]bool{}
	for _, n := range s.nodes {
		i := placement.Untolerated(pod.Spec.Tolerations, n.Spec.Taints)
		if i < 0 {
			continue
		}
		taint := &n.Spec.Taints[i]
		if said[taint.ToString()] {
			continue
		}
		said[taint.ToString()] = true
		v.because("node %s has the taint %s, which the pod does not tolerate", n.Name, taint.ToString())
		if strings.HasPrefix(taint.Key, "node.kubernetes.io/") {
			v.try("why node %s", n.Name) // the system's own: it goes when the node is well
			continue
		}
		v.advise("%s", tolerance(n.Name, taint))
		v.try("describe node %s", n.Name)
	}
}

// tolerance is what to do about a taint: on the pod's side, or on the node's.
func tolerance(node string, taint *corev1.Taint) string {
	operator := "operator: Exists"
	if taint.Value != "" {
		operator = "operator: Equal, value: " + taint.Value
	}
	return fmt.Sprintf("tolerate it, in spec.tolerations of the pod: {key: %s, %s, effect: %s}; or take it off: kubectl taint nodes %s %s-",
		taint.Key, operator, taint.Effect, node, taint.ToString())
}
