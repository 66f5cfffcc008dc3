package plan

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// selector chooses pods: by their labels, in some namespaces.
type selector struct {
	labels     labels.Selector
	namespaces []string
	// wide chooses namespaces by their labels; nil: none.
	wide labels.Selector
	// living leaves out pods that are being deleted, as topology spread does.
	living bool
}

func (s *selector) matches(c *Cluster, pod *corev1.Pod) bool {
	if s.living && pod.DeletionTimestamp != nil {
		return false
	}
	if !slices.Contains(s.namespaces, pod.Namespace) &&
		(s.wide == nil || !s.wide.Matches(labels.Set(c.namespaces[pod.Namespace]))) {
		return false
	}
	return s.labels.Matches(labels.Set(pod.Labels))
}

// equality is a label that every pod which the selector chooses has; ok is false if there is none.
func (s *selector) equality() (key, value string, ok bool) {
	reqs, _ := s.labels.Requirements()
	for i := range reqs {
		switch reqs[i].Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			if values := reqs[i].ValuesUnsorted(); len(values) == 1 {
				return reqs[i].Key(), values[0], true
			}
		}
	}
	return "", "", false
}

// asSelector is a label selector with the requirements that matchLabelKeys add from the pod's own labels.
// What cannot be read, which validation has refused before, chooses nothing.
func asSelector(ls *metav1.LabelSelector, own map[string]string, match, mismatch []string) labels.Selector {
	sel, err := metav1.LabelSelectorAsSelector(ls)
	if err != nil {
		return labels.Nothing()
	}
	if ls == nil || len(match)+len(mismatch) == 0 {
		return sel
	}
	for i, key := range slices.Concat(match, mismatch) {
		op := selection.In
		if i >= len(match) {
			op = selection.NotIn
		}
		if value, ok := own[key]; ok {
			if r, err := labels.NewRequirement(key, op, []string{value}); err == nil {
				sel = sel.Add(*r)
			}
		}
	}
	return sel
}

// appendAffinityTerm writes a term so that equal terms are written equally.
func appendAffinityTerm(b []byte, t *corev1.PodAffinityTerm, pod *corev1.Pod) []byte {
	b = append(b, 'n')
	if len(t.Namespaces) == 0 && t.NamespaceSelector == nil {
		b = appendString(b, pod.Namespace)
	} else {
		names := t.Namespaces
		if !slices.IsSorted(names) {
			names = slices.Clone(names)
			slices.Sort(names)
		}
		for _, n := range names {
			b = appendString(b, n)
		}
	}
	b = append(b, 'w')
	b = appendSelector(b, t.NamespaceSelector)
	b = append(b, 'l')
	b = appendSelector(b, t.LabelSelector)
	return appendKeys(b, pod.Labels, t.MatchLabelKeys, t.MismatchLabelKeys)
}

func appendKeys(b []byte, own map[string]string, match, mismatch []string) []byte {
	for _, key := range match {
		b = appendString(append(b, '+'), key)
		b = appendString(b, own[key])
	}
	for _, key := range mismatch {
		b = appendString(append(b, '-'), key)
		b = appendString(b, own[key])
	}
	return b
}

func appendSelector(b []byte, ls *metav1.LabelSelector) []byte {
	if ls == nil {
		return append(b, '0')
	}
	b = append(b, '{')
	b = appendMap(b, ls.MatchLabels)
	for i := range ls.MatchExpressions {
		e := &ls.MatchExpressions[i]
		b = appendString(append(b, ','), e.Key)
		b = appendString(b, string(e.Operator))
		for _, v := range e.Values {
			b = appendString(b, v)
		}
	}
	return append(b, '}')
}

// appendMap writes a map in the order of its keys.
func appendMap(b []byte, m map[string]string) []byte {
	if len(m) == 1 { // the common case needs no sorting
		for k, v := range m {
			return appendString(appendString(b, k), v)
		}
	}
	if len(m) == 0 {
		return b
	}
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		b = appendString(appendString(b, k), m[k])
	}
	return b
}

// appendString writes a string with its length, so that no two lists of strings look alike.
func appendString(b []byte, s string) []byte {
	b = strconv.AppendInt(b, int64(len(s)), 10)
	b = append(b, ':')
	return append(b, s...)
}

func newSelector(t *corev1.PodAffinityTerm, pod *corev1.Pod) selector {
	s := selector{labels: asSelector(t.LabelSelector, pod.Labels, t.MatchLabelKeys, t.MismatchLabelKeys), namespaces: t.Namespaces}
	if t.NamespaceSelector != nil {
		s.wide = asSelector(t.NamespaceSelector, nil, nil, nil)
	} else if len(t.Namespaces) == 0 {
		s.namespaces = []string{pod.Namespace}
	}
	return s
}
