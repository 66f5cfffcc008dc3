package podautoscaler

import (
	"cmp"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"minik8s/internal/controller/loop"
)

// index knows the pods of each autoscaler, and which autoscalers a pod has, without looking at all of either. An autoscaler is
// found by one label that its pods have; a selector that asks for none is compared with every pod of its namespace. Of pods
// that no autoscaler has nothing is remembered.
type index struct {
	mu      sync.Mutex
	byLabel map[label]map[loop.Key]*selected
	of      map[loop.Key]*selected
}

// label is one of a pod's labels, with its namespace; without key and value it stands for all pods of the namespace.
type label struct{ namespace, key, value string }

type selected struct {
	text     string
	selector labels.Selector
	by       label
	pods     map[string]*corev1.Pod // by name
}

func newIndex() *index {
	return &index{byLabel: map[label]map[loop.Key]*selected{}, of: map[loop.Key]*selected{}}
}

// labelOf is a label that everything has that is selected.
func labelOf(namespace string, s labels.Selector) label {
	requirements, _ := s.Requirements()
	for _, r := range requirements {
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			if values := r.ValuesUnsorted(); len(values) == 1 {
				return label{namespace, r.Key(), values[0]}
			}
		}
	}
	return label{namespace: namespace}
}

// set notes what an autoscaler selects. all returns the pods to look among, if that is new: every change of a pod that it does
// not show has changed called afterwards.
func (x *index) set(key loop.Key, text string, s labels.Selector, all func() []*corev1.Pod) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if have := x.of[key]; have != nil && have.text == text {
		return
	}
	x.remove(key)
	sel := &selected{text: text, selector: s, by: labelOf(key.Namespace, s), pods: map[string]*corev1.Pod{}}
	if x.byLabel[sel.by] == nil {
		x.byLabel[sel.by] = map[loop.Key]*selected{}
	}
	x.byLabel[sel.by][key], x.of[key] = sel, sel
	for _, p := range all() {
		if p.Namespace == key.Namespace && s.Matches(labels.Set(p.Labels)) {
			sel.pods[p.Name] = p
		}
	}
}

// forget drops an autoscaler.
func (x *index) forget(key loop.Key) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(key)
}

func (x *index) remove(key loop.Key) {
	have := x.of[key]
	if have == nil {
		return
	}
	delete(x.of, key)
	if delete(x.byLabel[have.by], key); len(x.byLabel[have.by]) == 0 {
		delete(x.byLabel, have.by)
	}
}

// changed notes a change of a pod.
func (x *index) changed(old, now *corev1.Pod) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.of) == 0 {
		return
	}
	for _, pod := range []*corev1.Pod{old, now} {
		if pod == nil {
			continue
		}
		x.each(pod, func(_ loop.Key, s *selected) {
			if now != nil && s.selector.Matches(labels.Set(now.Labels)) {
				s.pods[pod.Name] = now
			} else {
				delete(s.pods, pod.Name)
			}
		})
	}
}

// each calls do for the autoscalers that may have a pod.
func (x *index) each(pod *corev1.Pod, do func(key loop.Key, s *selected)) {
	for key, s := range x.byLabel[label{namespace: pod.Namespace}] {
		do(key, s)
	}
	for k, v := range pod.Labels {
		for key, s := range x.byLabel[label{pod.Namespace, k, v}] {
			do(key, s)
		}
	}
}

// podsOf returns an autoscaler's pods, in the order of their names, and the autoscalers that have one of them: two at most, as
// one besides itself is one too many.
func (x *index) podsOf(key loop.Key) (pods []*corev1.Pod, owners []loop.Key) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.of[key]
	if s == nil || len(s.pods) == 0 {
		return nil, nil
	}
	pods = make([]*corev1.Pod, 0, len(s.pods))
	for _, p := range s.pods {
		pods = append(pods, p)
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	owners = []loop.Key{key}
	for _, p := range pods {
		x.each(p, func(other loop.Key, o *selected) {
			if other != key && len(owners) == 1 && o.pods[p.Name] != nil {
				owners = append(owners, other)
			}
		})
		if len(owners) > 1 {
			break
		}
	}
	return pods, owners
}
