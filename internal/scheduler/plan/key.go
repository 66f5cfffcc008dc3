package plan

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Counters are found by what their term selects, written as bytes. Terms that select the same pods share a counter.

// appendAffinityTerm writes a term so that equal terms give equal bytes.
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

// appendKeys writes the requirements that matchLabelKeys and mismatchLabelKeys take from the pod's own labels.
func appendKeys(b []byte, own map[string]string, match, mismatch []string) []byte {
	b = appendOwn(b, '+', own, match)
	return appendOwn(b, '-', own, mismatch)
}

func appendOwn(b []byte, mark byte, own map[string]string, keys []string) []byte {
	for _, key := range keys {
		if value, ok := own[key]; ok { // a missing label adds no requirement, an empty one does
			b = appendString(appendString(append(b, mark), key), value)
		}
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

// appendString writes a string with its length, so that different lists of strings never give the same bytes.
func appendString(b []byte, s string) []byte {
	b = strconv.AppendInt(b, int64(len(s)), 10)
	b = append(b, ':')
	return append(b, s...)
}
