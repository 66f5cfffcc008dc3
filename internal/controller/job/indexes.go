package job

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// indexes is a set of completion indexes.
type indexes map[int]struct{}

// eachIndex parses "0,2-4"; indexes at or beyond limit, and what is not a number, are left out.
func eachIndex(s string, limit int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for part := range strings.SplitSeq(s, ",") {
			first, last, isRange := strings.Cut(part, "-")
			if !isRange {
				last = first
			}
			from, err1 := strconv.Atoi(first)
			to, err2 := strconv.Atoi(last)
			if err1 != nil || err2 != nil {
				continue
			}
			for i := from; i <= min(to, limit-1); i++ {
				if !yield(i) {
					return
				}
			}
		}
	}
}

// parseIndexes is the set of eachIndex.
func parseIndexes(s string, limit int) indexes {
	out := indexes{}
	for i := range eachIndex(s, limit) {
		out[i] = struct{}{}
	}
	return out
}

// String is the set as the status holds it: "0,2-4".
func (x indexes) String() string {
	sorted := make([]int, 0, len(x))
	for i := range x {
		sorted = append(sorted, i)
	}
	slices.Sort(sorted)
	var parts []string
	for i := 0; i < len(sorted); {
		j := i
		for j+1 < len(sorted) && sorted[j+1] == sorted[j]+1 {
			j++
		}
		switch {
		case j == i:
			parts = append(parts, strconv.Itoa(sorted[i]))
		case j == i+1:
			parts = append(parts, strconv.Itoa(sorted[i]), strconv.Itoa(sorted[j]))
		default:
			parts = append(parts, strconv.Itoa(sorted[i])+"-"+strconv.Itoa(sorted[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}

func (x indexes) has(i int) bool {
	_, ok := x[i]
	return ok
}

// indexOf is a pod's completion index, -1 if it has none.
func indexOf(p *corev1.Pod) int {
	n, err := strconv.Atoi(p.Annotations[batchv1.JobCompletionIndexAnnotation])
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// failuresBefore is how often the index of a pod had failed when the pod was created.
func failuresBefore(p *corev1.Pod) int {
	n, err := strconv.Atoi(p.Annotations[batchv1.JobIndexFailureCountAnnotation])
	if err != nil {
		return 0
	}
	return n
}
