package deployment

import (
	"fmt"
	"math"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The reasons of the condition Progressing and Available; kubectl rollout status reads them.
const (
	newSetAvailable  = "NewReplicaSetAvailable"
	setUpdated       = "ReplicaSetUpdated"
	newSetCreated    = "NewReplicaSetCreated"
	foundNewSet      = "FoundNewReplicaSet"
	timedOut         = "ProgressDeadlineExceeded"
	paused           = "DeploymentPaused"
	resumed          = "DeploymentResumed"
	enoughAvailable  = "MinimumReplicasAvailable"
	tooFewAvailable  = "MinimumReplicasUnavailable"
	failedToCreate   = "ReplicaSetCreateError"
	scalingReplicaOf = "ScalingReplicaSet"
)

// planStatus works out the status, the revision and when to reconcile again.
func (s *step) planStatus() {
	st := s.calculate()
	s.progress(&st)
	s.copyReplicaFailure(&st)
	s.plan.status = st
	if s.plan.revision = s.d.Annotations[revisionAnnotation]; !s.d.Spec.Paused && s.d.DeletionTimestamp == nil {
		if rs := s.plannedCurrent(); rs != nil {
			s.plan.revision = rs.Annotations[revisionAnnotation]
		}
	}
	s.plan.statusSaved = apiequality.Semantic.DeepEqual(st, s.d.Status) && s.plan.revision == s.d.Annotations[revisionAnnotation]
	s.plan.lookAgain = s.untilDeadline(&st)
}

// plannedCurrent is the current set as it will be.
func (s *step) plannedCurrent() *appsv1.ReplicaSet {
	if s.plan.create != nil {
		return s.plan.create
	}
	for _, rs := range s.plan.update {
		if s.current != nil && rs.Name == s.current.Name {
			return rs
		}
	}
	return s.current
}

// calculate is the status without the condition Progressing.
func (s *step) calculate() appsv1.DeploymentStatus {
	st := *s.d.Status.DeepCopy()
	st.ObservedGeneration = s.d.Generation
	st.Replicas, st.UpdatedReplicas, st.ReadyReplicas, st.AvailableReplicas = 0, 0, 0, 0
	var wanted, terminating int32
	for _, rs := range s.all() {
		wanted += value(rs.Spec.Replicas)
		st.Replicas += rs.Status.Replicas
		st.ReadyReplicas += rs.Status.ReadyReplicas
		st.AvailableReplicas += rs.Status.AvailableReplicas
		if t := rs.Status.TerminatingReplicas; t != nil {
			terminating += *t
		}
	}
	if s.current != nil {
		st.UpdatedReplicas = s.current.Status.Replicas
	}
	st.UnavailableReplicas = max(wanted-st.AvailableReplicas, 0)
	st.TerminatingReplicas = &terminating
	if st.AvailableReplicas >= value(s.d.Spec.Replicas)-s.unavailable {
		s.set(&st, appsv1.DeploymentAvailable, corev1.ConditionTrue, enoughAvailable, "Deployment has minimum availability.")
	} else {
		s.set(&st, appsv1.DeploymentAvailable, corev1.ConditionFalse, tooFewAvailable, "Deployment does not have minimum availability.")
	}
	return st
}

// complete reports whether the rollout is finished.
func complete(d *appsv1.Deployment, st *appsv1.DeploymentStatus) bool {
	n := value(d.Spec.Replicas)
	return st.UpdatedReplicas == n && st.Replicas == n && st.AvailableReplicas == n && st.ObservedGeneration >= d.Generation
}

func hasDeadline(d *appsv1.Deployment) bool {
	return d.Spec.ProgressDeadlineSeconds != nil && *d.Spec.ProgressDeadlineSeconds != math.MaxInt32
}

// progress sets the condition Progressing.
func (s *step) progress(st *appsv1.DeploymentStatus) {
	if !hasDeadline(s.d) {
		s.unset(st, appsv1.DeploymentProgressing)
		return
	}
	cond := find(st, appsv1.DeploymentProgressing)
	reason := ""
	if cond != nil {
		reason = cond.Reason
	}
	about := fmt.Sprintf("Deployment %q", s.d.Name)
	if s.current != nil {
		about = fmt.Sprintf("ReplicaSet %q", s.current.Name)
	}
	switch {
	case s.d.Spec.Paused:
		if reason != paused && reason != timedOut {
			s.set(st, appsv1.DeploymentProgressing, corev1.ConditionUnknown, paused, "Deployment is paused")
		}
	case reason == paused:
		s.set(st, appsv1.DeploymentProgressing, corev1.ConditionUnknown, resumed, "Deployment is resumed")
	case s.plan.create != nil:
		s.set(st, appsv1.DeploymentProgressing, corev1.ConditionTrue, newSetCreated, fmt.Sprintf("Created new replica set %q", s.plan.create.Name))
	case st.Replicas == st.UpdatedReplicas && reason == newSetAvailable: // it is complete, and a lost pod does not start it again
	case complete(s.d, st):
		s.set(st, appsv1.DeploymentProgressing, corev1.ConditionTrue, newSetAvailable, about+" has successfully progressed.")
	case s.progressed(st):
		s.setProgressing(st, about+" is progressing.")
	case s.deadlineExceeded(cond):
		s.set(st, appsv1.DeploymentProgressing, corev1.ConditionFalse, timedOut, about+" has timed out progressing.")
	case cond == nil && s.current != nil:
		s.set(st, appsv1.DeploymentProgressing, corev1.ConditionTrue, foundNewSet, fmt.Sprintf("Found new replica set %q", s.current.Name))
	}
}

// progressed reports whether the rollout has advanced since the last status.
func (s *step) progressed(st *appsv1.DeploymentStatus) bool {
	was := &s.d.Status
	return st.UpdatedReplicas > was.UpdatedReplicas || st.Replicas-st.UpdatedReplicas < was.Replicas-was.UpdatedReplicas ||
		st.ReadyReplicas > was.ReadyReplicas || st.AvailableReplicas > was.AvailableReplicas
}

// setProgressing records progress now: the progress deadline counts from here.
func (s *step) setProgressing(st *appsv1.DeploymentStatus, message string) {
	c := appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: setUpdated,
		Message: message, LastUpdateTime: s.stamp(), LastTransitionTime: s.stamp()}
	if old := find(st, c.Type); old != nil && old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	s.put(st, c)
}

// deadlineExceeded reports whether there was no progress for progressDeadlineSeconds.
func (s *step) deadlineExceeded(c *appsv1.DeploymentCondition) bool {
	switch {
	case c == nil || c.Reason == newSetAvailable:
		return false
	case c.Reason == timedOut:
		return true
	}
	return s.now.After(c.LastUpdateTime.Add(time.Duration(*s.d.Spec.ProgressDeadlineSeconds) * time.Second))
}

// untilDeadline is how long until the progress deadline; 0 if none applies.
func (s *step) untilDeadline(st *appsv1.DeploymentStatus) time.Duration {
	c := find(st, appsv1.DeploymentProgressing)
	if !hasDeadline(s.d) || s.d.Spec.Paused || c == nil || c.Reason == timedOut || c.Reason == newSetAvailable || complete(s.d, st) {
		return 0
	}
	wait := c.LastUpdateTime.Add(time.Duration(*s.d.Spec.ProgressDeadlineSeconds) * time.Second).Sub(s.now)
	return max(wait, 0) + time.Second
}

// copyReplicaFailure copies the condition ReplicaFailure of a set to the deployment.
func (s *step) copyReplicaFailure(st *appsv1.DeploymentStatus) {
	sets := s.all()
	slices.Reverse(sets) // the current one first
	for _, rs := range sets {
		for _, c := range rs.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
				s.set(st, appsv1.DeploymentReplicaFailure, c.Status, c.Reason, c.Message)
				return
			}
		}
	}
	if c := find(st, appsv1.DeploymentReplicaFailure); c != nil && (s.current != nil || c.Reason != failedToCreate) {
		s.unset(st, appsv1.DeploymentReplicaFailure)
	}
}

func (s *step) stamp() metav1.Time { return metav1.NewTime(s.now.Truncate(time.Second)) }

func find(st *appsv1.DeploymentStatus, t appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range st.Conditions {
		if st.Conditions[i].Type == t {
			return &st.Conditions[i]
		}
	}
	return nil
}

// set sets a condition; one with the same status and reason stays as it is.
func (s *step) set(st *appsv1.DeploymentStatus, t appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string) {
	c := appsv1.DeploymentCondition{Type: t, Status: status, Reason: reason, Message: message,
		LastUpdateTime: s.stamp(), LastTransitionTime: s.stamp()}
	if old := find(st, t); old != nil && old.Status == status {
		if old.Reason == reason {
			return
		}
		c.LastTransitionTime = old.LastTransitionTime
	}
	s.put(st, c)
}

func (s *step) put(st *appsv1.DeploymentStatus, c appsv1.DeploymentCondition) {
	s.unset(st, c.Type)
	st.Conditions = append(st.Conditions, c)
}

func (s *step) unset(st *appsv1.DeploymentStatus, t appsv1.DeploymentConditionType) {
	st.Conditions = slices.DeleteFunc(slices.Clone(st.Conditions), func(c appsv1.DeploymentCondition) bool { return c.Type == t })
	if len(st.Conditions) == 0 {
		st.Conditions = nil
	}
}
