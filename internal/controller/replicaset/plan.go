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

// plan is what has to be done about one replica set.
type plan struct {
	create int
	remove []*corev1.Pod
}

// decide compares what is wanted with the active pods. related are the pods among which a deletion
// should thin out the nodes.
func decide(rs *appsv1.ReplicaSet, active, related []*corev1.Pod, now time.Time) plan {
	if rs.DeletionTimestamp != nil {
		return plan{} // its pods are the garbage collector's
	}
	switch diff := int(wanted(rs)) - len(active); {
	case diff > 0:
		return plan{create: min(diff, burst)}
	case diff < 0:
		return plan{remove: pods.ForDeletion(active, related, now)[:min(-diff, burst)]}
	}
	return plan{}
}

func wanted(rs *appsv1.ReplicaSet) int32 {
	if rs.Spec.Replicas == nil {
		return 1
	}
	return *rs.Spec.Replicas
}

// status is how the replica set stands; failed is what went wrong in carrying the plan out. lookAgain is
// when a pod will have been ready for long enough; 0 if none is waiting for that.
func status(rs *appsv1.ReplicaSet, active []*corev1.Pod, terminating int32, did plan, failed error, now time.Time) (s appsv1.ReplicaSetStatus, lookAgain time.Duration) {
	s = *rs.Status.DeepCopy()
	s.Replicas, s.FullyLabeledReplicas, s.ReadyReplicas, s.AvailableReplicas = int32(len(active)), 0, 0, 0
	s.TerminatingReplicas = &terminating
	s.ObservedGeneration = rs.Generation
	template := labels.SelectorFromSet(rs.Spec.Template.Labels)
	for _, p := range active {
		if template.Matches(labels.Set(p.Labels)) {
			s.FullyLabeledReplicas++
		}
		if pods.Ready(p) {
			s.ReadyReplicas++
		}
		ok, wait := pods.Available(p, rs.Spec.MinReadySeconds, now)
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
