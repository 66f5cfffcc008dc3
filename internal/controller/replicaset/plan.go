package replicaset

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/controller/pods"
)

// burst bounds what one round creates or deletes.
const burst = 500

// plan is what to do about one set.
type plan struct {
	create int
	remove []*corev1.Pod
	// lookAgain is how long until failed pods may be replaced; 0: now.
	lookAgain time.Duration
}

// decide compares the wanted number with the active pods. failed are pods that will not run again. related are the
// pods that deletions should spread evenly over nodes. changed is when the spec was last seen to change.
func decide(of set, active, failed, related []*corev1.Pod, changed, now time.Time) plan {
	if of.obj.GetDeletionTimestamp() != nil {
		return plan{} // the garbage collector deletes its pods
	}
	switch diff := int(wanted(of)) - len(active); {
	case diff > 0:
		if wait := backoff(failed, int(wanted(of)), changed, now); wait > 0 {
			return plan{lookAgain: wait}
		}
		return plan{create: min(diff, burst)}
	case diff < 0:
		return plan{remove: pods.ForDeletion(active, related, now)[:min(-diff, burst)]}
	}
	return plan{}
}

// The back-off after failed pods. A pod fails at once only if its node refuses it.
const (
	firstBackoff = time.Second
	maxBackoff   = 5 * time.Minute
	// forgetAfter is how long a failure counts.
	forgetAfter = 2 * maxBackoff
)

// backoff is how long to wait before failed pods are replaced. Pods created before the set's last change do not
// count. All pods may fail at the same time, with their node for example, and are then replaced at once. But when
// their replacements have failed as well, something refuses them all: the wait doubles with each such round.
// (Kubernetes has no such back-off; only its client's rate limit applies.)
func backoff(failed []*corev1.Pod, wanted int, changed, now time.Time) time.Duration {
	recent := 0
	var last time.Time
	for _, p := range failed {
		at := p.CreationTimestamp.Time
		if now.Sub(at) > forgetAfter || at.Before(changed) {
			continue
		}
		recent++
		if at.After(last) {
			last = at
		}
	}
	rounds := recent / max(wanted, 1)
	if rounds < 2 {
		return 0
	}
	wait := maxBackoff
	if rounds < 12 {
		wait = min(firstBackoff<<(rounds-2), maxBackoff)
	}
	return max(last.Add(wait).Sub(now), 0)
}

func wanted(of set) int32 {
	if of.spec.Replicas == nil {
		return 1
	}
	return *of.spec.Replicas
}

// status is the set's status; ready says since when a pod is ready, failed is the error of carrying the plan out. lookAgain is when a pod will have been
// ready for long enough; 0 if none is waiting for that.
func status(of set, active []*corev1.Pod, terminating int32, did plan, failed error, ready func(*corev1.Pod) time.Time, now time.Time) (s appsv1.ReplicaSetStatus, lookAgain time.Duration) {
	s = *of.status.DeepCopy()
	s.Replicas, s.FullyLabeledReplicas, s.ReadyReplicas, s.AvailableReplicas = int32(len(active)), 0, 0, 0
	s.TerminatingReplicas = &terminating
	s.ObservedGeneration = of.obj.GetGeneration()
	template := labels.SelectorFromSet(of.spec.Template.Labels)
	for _, p := range active {
		if template.Matches(labels.Set(p.Labels)) {
			s.FullyLabeledReplicas++
		}
		if pods.Ready(p) {
			s.ReadyReplicas++
		}
		ok, wait := pods.Available(p, of.spec.MinReadySeconds, ready, now)
		if ok {
			s.AvailableReplicas++
		}
		if wait > 0 && (lookAgain == 0 || wait < lookAgain) {
			lookAgain = wait
		}
	}
	s.Conditions = failure(s.Conditions, did, failed, now)
	return s, lookAgain
}

// failure sets or removes the condition ReplicaFailure.
func failure(conditions []appsv1.ReplicaSetCondition, did plan, failed error, now time.Time) []appsv1.ReplicaSetCondition {
	is := func(c appsv1.ReplicaSetCondition) bool { return c.Type == appsv1.ReplicaSetReplicaFailure }
	if failed == nil {
		if out := slices.DeleteFunc(slices.Clone(conditions), is); len(out) > 0 {
			return out
		}
		return nil
	}
	reason := "FailedCreate"
	if did.create == 0 {
		reason = "FailedDelete"
	}
	c := appsv1.ReplicaSetCondition{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue,
		Reason: reason, Message: failed.Error(), LastTransitionTime: metav1.NewTime(now.Truncate(time.Second))}
	if i := slices.IndexFunc(conditions, is); i >= 0 && conditions[i].Reason == reason {
		return conditions // unchanged: a message that differs each time would be written each time
	}
	return append(slices.DeleteFunc(slices.Clone(conditions), is), c)
}
