package endpointslice

import (
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/controller/loop"
)

// index knows which Services a pod serves, and which pods serve a Service, without looking at all of either for each
// change. A Service is found by one of its selector's labels; its pods are remembered, and of pods that serve nothing
// nothing is.
type index struct {
	mu       sync.Mutex
	byLabel  map[label]map[loop.Key]bool
	services map[loop.Key]*selection
}

type label struct{ namespace, key, value string }

// selection is a Service's pods.
type selection struct {
	selector map[string]string
	by       label
	pods     map[string]bool // by name; nil: not looked for yet
}

func newIndex() *index {
	return &index{byLabel: map[label]map[loop.Key]bool{}, services: map[loop.Key]*selection{}}
}

// selectorOf is a Service's selector; nil if others say what its endpoints are.
func selectorOf(svc *corev1.Service) map[string]string {
	if svc == nil || svc.Spec.Type == corev1.ServiceTypeExternalName || len(svc.Spec.Selector) == 0 {
		return nil
	}
	return svc.Spec.Selector
}

// serviceChanged notes what a Service selects.
func (x *index) serviceChanged(key loop.Key, svc *corev1.Service) {
	selector := selectorOf(svc)
	x.mu.Lock()
	defer x.mu.Unlock()
	if have := x.services[key]; have != nil {
		if maps.Equal(have.selector, selector) {
			return
		}
		delete(x.services, key)
		if delete(x.byLabel[have.by], key); len(x.byLabel[have.by]) == 0 {
			delete(x.byLabel, have.by)
		}
	}
	for k, v := range selector { // any one will do
		by := label{key.Namespace, k, v}
		if x.byLabel[by] == nil {
			x.byLabel[by] = map[loop.Key]bool{}
		}
		x.byLabel[by][key] = true
		x.services[key] = &selection{selector: selector, by: by}
		return
	}
}

// podChanged returns the Services that a pod serves, or has served until now.
func (x *index) podChanged(old, now *corev1.Pod) []loop.Key {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []loop.Key
	touched := map[loop.Key]bool{}
	for _, pod := range []*corev1.Pod{old, now} {
		if pod == nil {
			continue
		}
		for k, v := range pod.Labels {
			for key := range x.byLabel[label{pod.Namespace, k, v}] {
				s := x.services[key]
				if !selects(s.selector, pod.Labels) {
					continue
				}
				if s.pods != nil {
					if now != nil && selects(s.selector, now.Labels) {
						s.pods[pod.Name] = true
					} else {
						delete(s.pods, pod.Name)
					}
				}
				if !touched[key] {
					touched[key] = true
					out = append(out, key)
				}
			}
		}
	}
	return out
}

// podsOf returns the names of a Service's pods. The first time all returns the pods to look among: every change of a pod
// that it does not show has podChanged called afterwards.
func (x *index) podsOf(key loop.Key, all func() []*corev1.Pod) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.services[key]
	if s == nil {
		return nil
	}
	if s.pods == nil {
		s.pods = map[string]bool{}
		for _, pod := range all() {
			if pod.Namespace == key.Namespace && selects(s.selector, pod.Labels) {
				s.pods[pod.Name] = true
			}
		}
	}
	out := make([]string, 0, len(s.pods))
	for name := range s.pods {
		out = append(out, name)
	}
	return out
}

func selects(selector, labels map[string]string) bool {
	for k, v := range selector {
		if have, ok := labels[k]; !ok || have != v {
			return false
		}
	}
	return true
}
