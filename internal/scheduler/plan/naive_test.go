package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api/placement"
	"minik8s/internal/api/podspec"
)

// world is a cluster as plain lists, without counters or an index: slow, but obviously correct.
type world struct {
	nodes map[string]*corev1.Node
	pods  map[string]*corev1.Pod // bound, by name
	space map[string]map[string]string
}

func (w *world) on(node string) (out []*corev1.Pod) {
	for _, p := range w.pods {
		if p.Spec.NodeName == node {
			out = append(out, p)
		}
	}
	return out
}

// mayHost reports whether all filters let the pod have the node.
func (w *world) mayHost(pod *corev1.Pod, node *corev1.Node) bool {
	spec := &pod.Spec
	if node.Spec.Unschedulable && !placement.Tolerates(spec.Tolerations, &closed) || node.Status.Conditions[0].Status != corev1.ConditionTrue ||
		placement.Untolerated(spec.Tolerations, node.Spec.Taints) >= 0 || !placement.Selects(spec, node) {
		return false
	}
	sum, ports := podspec.Requests(spec), placement.HostPorts(spec)
	there := w.on(node.Name)
	for _, p := range there {
		for name, n := range podspec.Requests(&p.Spec) {
			if sum[name] > 0 {
				sum[name] += n
			}
		}
		for _, a := range placement.HostPorts(&p.Spec) {
			for _, b := range ports {
				if a.Clashes(b) {
					return false
				}
			}
		}
	}
	for name, n := range sum {
		if has := node.Status.Allocatable[name]; n > 0 && n > podspec.Amount(name, has) {
			return false
		}
	}
	most := node.Status.Allocatable[corev1.ResourcePods]
	return int64(len(there)) < most.Value() && w.affine(pod, node) && w.apart(pod, node) && w.spread(pod, node)
}

func matches(ls *metav1.LabelSelector, set map[string]string) bool {
	sel, err := metav1.LabelSelectorAsSelector(ls)
	return err == nil && sel.Matches(labels.Set(set))
}

// chooses reports whether a term of owner selects a pod.
func (w *world) chooses(t *corev1.PodAffinityTerm, owner, pod *corev1.Pod) bool {
	in := slices.Contains(t.Namespaces, pod.Namespace) || t.NamespaceSelector != nil && matches(t.NamespaceSelector, w.space[pod.Namespace]) ||
		len(t.Namespaces) == 0 && t.NamespaceSelector == nil && owner.Namespace == pod.Namespace
	return in && matches(t.LabelSelector, pod.Labels)
}

// together reports whether both nodes have the same value of a label.
func together(a, b *corev1.Node, key string) bool {
	if a == nil || b == nil {
		return false
	}
	x, ok := a.Labels[key]
	y, also := b.Labels[key]
	return ok && also && x == y
}

func (w *world) affine(pod *corev1.Pod, node *corev1.Node) bool {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAffinity == nil {
		return true
	}
	terms := pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	all := func(p *corev1.Pod) bool {
		for i := range terms {
			if !w.chooses(&terms[i], pod, p) {
				return false
			}
		}
		return true
	}
	met, anywhere := true, false
	for i := range terms {
		key, here := terms[i].TopologyKey, false
		if _, ok := node.Labels[key]; !ok {
			return false
		}
		for _, p := range w.pods {
			if !all(p) {
				continue
			}
			other := w.nodes[p.Spec.NodeName]
			here = here || together(node, other, key)
			if other != nil {
				_, ok := other.Labels[key]
				anywhere = anywhere || ok
			}
		}
		met = met && here
	}
	return met || !anywhere && all(pod)
}

func antiTerms(p *corev1.Pod) []corev1.PodAffinityTerm {
	if p.Spec.Affinity == nil || p.Spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	return p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

func (w *world) apart(pod *corev1.Pod, node *corev1.Node) bool {
	for _, p := range w.pods {
		other := w.nodes[p.Spec.NodeName]
		for _, t := range antiTerms(pod) {
			if w.chooses(&t, pod, p) && together(node, other, t.TopologyKey) {
				return false
			}
		}
		for _, t := range antiTerms(p) {
			if w.chooses(&t, p, pod) && together(node, other, t.TopologyKey) {
				return false
			}
		}
	}
	return true
}

func (w *world) spread(pod *corev1.Pod, node *corev1.Node) bool {
	var hard []corev1.TopologySpreadConstraint
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == corev1.DoNotSchedule {
			hard = append(hard, c)
		}
	}
	for _, c := range hard {
		empty := c.LabelSelector != nil && len(c.LabelSelector.MatchLabels)+len(c.LabelSelector.MatchExpressions) == 0
		domains := map[string]int32{}
		for _, n := range w.nodes {
			eligible := placement.Selects(&pod.Spec, n)
			for _, other := range hard {
				if _, ok := n.Labels[other.TopologyKey]; !ok {
					eligible = false
				}
			}
			if !eligible {
				continue
			}
			domain := n.Labels[c.TopologyKey]
			domains[domain] += 0
			for _, p := range w.on(n.Name) {
				if !empty && p.Namespace == pod.Namespace && p.DeletionTimestamp == nil && matches(c.LabelSelector, p.Labels) {
					domains[domain]++
				}
			}
		}
		least := int32(1 << 30)
		for _, n := range domains {
			least = min(least, n)
		}
		if need := c.MinDomains; len(domains) == 0 || need != nil && int32(len(domains)) < *need {
			least = 0
		}
		domain, ok := node.Labels[c.TopologyKey]
		if !ok {
			return false
		}
		self := int32(0)
		if matches(c.LabelSelector, pod.Labels) {
			self = 1
		}
		if domains[domain]+self-least > c.MaxSkew {
			return false
		}
	}
	return true
}
