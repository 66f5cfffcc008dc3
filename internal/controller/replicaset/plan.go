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

// plan is what has to be done about one set.
type plan struct {
	create int
	remove []*corev1.Pod
	// lookAgain is when pods may be made in place of those that failed; 0: now.
	lookAgain time.Duration
}

// decide compares what is wanted with the active pods. failed are those that will not run again, related
// those among which a deletion should thin out the nodes; changed is when its spec was last seen to change.
func decide(of set, active, failed, related []*corev1.Pod, changed, now time.Time) plan {
	if of.obj.GetDeletionTimestamp() != nil {
		return plan{} // its pods are the garbage collector's
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

// The back-off after pods that failed as a whole, which only a node that refuses them makes happen at once.
const (
	firstBackoff = time.Second
	maxBackoff   = 5 * time.Minute
	// forgetAfter is how long a failure counts.
	forgetAfter = 2 * maxBackoff
)

// backoff is how long to wait before pods are made in place of failed ones. Those made before the set was
// last changed do not count. As many as are wanted may fail
// at once, say with their node, and are replaced at once. But when those in their place have failed as
// well, something refuses them all: the wait doubles with each such round. (Kubernetes goes on as fast as
// its client may.)
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

// status is how the set stands; failed is what went wrong in carrying the plan out. lookAgain is
// when a pod will have been ready for long enough; 0 if none is waiting for that.
func status(of set, active []*corev1.Pod, terminating int32, did plan, failed error, now time.Time) (s appsv1.ReplicaSetStatus, lookAgain time.Duration) {
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
		ok, wait := pods.Available(p, of.spec.MinReadySeconds, now)
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

// failure sets or takes away the condition ReplicaFailure.
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
		return conditions // as it was: a message that changes each time would be written each time
	}
	return append(slices.DeleteFunc(slices.Clone(conditions), is), c)
}
