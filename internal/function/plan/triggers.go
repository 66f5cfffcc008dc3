package plan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/minik8s"
)

// Due is the last time of a schedule after last and not after now; a zero one: there is none. next is the schedule's first time
// after another. After a long silence it does not go through all times.
func Due(next func(time.Time) time.Time, last, now time.Time) (due time.Time) {
	from := last
	for _, back := range []time.Duration{time.Hour, 24 * time.Hour, 32 * 24 * time.Hour} {
		if start := now.Add(-back); start.After(last) {
			if t := next(start); !t.IsZero() && !t.After(now) {
				from = start
				break
			}
		}
	}
	for t := next(from); !t.IsZero() && !t.After(now); t = next(t) {
		due = t
	}
	return due
}

// Own reports whether an object is an instance of a function, or keeps them or leads to it.
func Own(f *minik8s.Function, o metav1.Object) bool {
	return o.GetNamespace() == f.Namespace && (o.GetLabels()[minik8s.FunctionLabel] == Derived(f.Name) || o.GetAnnotations()[NameAnnotation] == f.Name)
}
