package pods

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// deletionCost is the annotation with the cost of deleting a pod: cheaper pods are deleted first.
const deletionCost = "controller.kubernetes.io/pod-deletion-cost"

// ForDeletion sorts a copy of pods, those to delete first in front: without a node; pending; not ready; with a low
// deletion cost; with more pods of related on their node; ready, or created, more recently; restarted more often.
// related are the pods of all replica sets of the same deployment. The order is that of Kubernetes
// (ActivePodsWithRanks in pkg/controller/controller_utils.go).
func ForDeletion(list, related []*corev1.Pod, now time.Time) []*corev1.Pod {
	perNode := map[string]int{}
	for _, p := range related {
		if Active(p) && p.Spec.NodeName != "" {
			perNode[p.Spec.NodeName]++
		}
	}
	out := slices.Clone(list)
	slices.SortStableFunc(out, func(a, b *corev1.Pod) int { return before(a, b, perNode, now) })
	return out
}

var phaseOrder = map[corev1.PodPhase]int{corev1.PodPending: 0, corev1.PodUnknown: 1, corev1.PodRunning: 2}

func before(a, b *corev1.Pod, perNode map[string]int, now time.Time) int {
	if c := cmp.Compare(bit(a.Spec.NodeName != ""), bit(b.Spec.NodeName != "")); c != 0 {
		return c
	}
	if c := cmp.Compare(phaseOrder[a.Status.Phase], phaseOrder[b.Status.Phase]); c != 0 {
		return c
	}
	if c := cmp.Compare(bit(Ready(a)), bit(Ready(b))); c != 0 {
		return c
	}
	if c := cmp.Compare(cost(a), cost(b)); c != 0 {
		return c
	}
	if c := cmp.Compare(perNode[b.Spec.NodeName], perNode[a.Spec.NodeName]); c != 0 && a.Spec.NodeName != "" {
		return c
	}
	if Ready(a) && Ready(b) {
		if c, told := younger(readySince(a), readySince(b), a, b, now); told {
			return c
		}
	}
	if c := cmp.Compare(restarts(b), restarts(a)); c != 0 {
		return c
	}
	if c, told := younger(a.CreationTimestamp.Time, b.CreationTimestamp.Time, a, b, now); told {
		return c
	}
	return cmp.Compare(a.Name, b.Name)
}

// younger orders the more recent first. Ages are compared by their order of magnitude, and within one the UID
// decides, which is as good as random: otherwise every scale-down would spare the oldest node's pods.
func younger(ta, tb time.Time, a, b *corev1.Pod, now time.Time) (c int, told bool) {
	if ta.Equal(tb) {
		return 0, false
	}
	if ta.IsZero() || tb.IsZero() {
		return cmp.Compare(bit(!ta.IsZero()), bit(!tb.IsZero())), true
	}
	if c := cmp.Compare(magnitude(now.Sub(ta)), magnitude(now.Sub(tb))); c != 0 {
		return c, true
	}
	return cmp.Compare(a.UID, b.UID), true
}

func magnitude(age time.Duration) int {
	if age <= 0 {
		return -1
	}
	return int(math.Log2(float64(age)))
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func cost(p *corev1.Pod) int {
	n, err := strconv.ParseInt(p.Annotations[deletionCost], 10, 32)
	if err != nil {
		return 0
	}
	return int(n)
}

func readySince(p *corev1.Pod) time.Time {
	if c := Condition(p, corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

func restarts(p *corev1.Pod) int32 {
	var most int32
	for i := range p.Status.ContainerStatuses {
		most = max(most, p.Status.ContainerStatuses[i].RestartCount)
	}
	return most
}
