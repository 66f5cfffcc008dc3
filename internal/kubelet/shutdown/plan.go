package shutdown

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/podspec"
)

// Periods are how long pods may take to end when the machine shuts down.
type Periods struct {
	// All is for all pods together; 0: they are not ended.
	All time.Duration
	// Critical is the part of All that is kept for critical pods, at the end.
	Critical time.Duration
}

// margin is how much longer than Periods.All the machine should wait, for the last status of the last pod.
const margin = 2 * time.Second

// Within are the periods for a machine that waits so long: shorter ones in the same proportion, if it waits less.
func (p Periods) Within(granted time.Duration) Periods {
	most := max(granted-margin, granted/2)
	if p.All <= most {
		return p
	}
	return Periods{All: most, Critical: time.Duration(float64(p.Critical) / float64(p.All) * float64(most))}
}

// Group is pods that end at the same time.
type Group struct {
	Pods []*corev1.Pod
	// Period is how long they may take, at most.
	Period time.Duration
}

// systemCritical is the least priority of a critical pod: that of the class system-cluster-critical.
const systemCritical = 2_000_000_000

// Groups are the pods that have not finished, in the order in which they are ended. A group without pods is left out, so
// nobody waits for it.
func Groups(pods []*corev1.Pod, p Periods) []Group {
	ordinary, critical := Group{Period: p.All - p.Critical}, Group{Period: p.Critical}
	for _, pod := range pods {
		to := &ordinary
		if podspec.Finished(pod.Status.Phase) {
			continue
		}
		if pod.Spec.Priority != nil && *pod.Spec.Priority >= systemCritical {
			to = &critical
		}
		to.Pods = append(to.Pods, pod)
	}
	var out []Group
	for _, g := range []Group{ordinary, critical} {
		if len(g.Pods) > 0 {
			out = append(out, g)
		}
	}
	return out
}
