package job

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/controller/pods"
)

// burst bounds what one round creates or deletes.
const burst = 500

// plan is what to do about one job, in this order: nothing after the status may be done if the status could not be
// saved.
type plan struct {
	status  batchv1.JobStatus
	changed bool
	events  []event
	untrack []*corev1.Pod // remove the finalizer: they are in the status
	end     []*corev1.Pod // delete; they will be counted as failures
	remove  []*corev1.Pod // remove the finalizer and delete: they are surplus, and do not count as failures
	create  []want
	// lookAgain is when a back-off or the deadline ends; 0: when something changes.
	lookAgain time.Duration
}

type event struct{ kind, reason, message string }

// want is a pod to make. index is -1 if the job has no indexes.
type want struct{ index, failures int }

// step is a job in the middle of a decision.
type step struct {
	job  *batchv1.Job
	list []*corev1.Pod
	now  time.Time
	// began is when the job started, by the same clock as now, if its status says that it has.
	began time.Time
	*podCounts
	settled bool
	plan    plan
}

// decide is the controller's decision; it is pure. settled: list shows everything that was written before. began is when the
// job started, by the same clock as now; the time in its status may be another clock's.
func decide(job *batchv1.Job, list []*corev1.Pod, settled bool, began, now time.Time) plan {
	s := &step{job: job, list: list, settled: settled, began: began, now: now}
	if job.DeletionTimestamp != nil || finished(job) != nil {
		for _, p := range list { // nothing is counted any more: remove the finalizer
			if tracked(p) {
				s.plan.untrack = append(s.plan.untrack, p)
			}
		}
		return s.plan
	}
	s.podCounts = count(job, list)
	s.plan.untrack = s.untrack
	s.plan.status = *job.Status.DeepCopy()
	s.suspension()
	if ending := s.ending(); ending != nil {
		s.finish(ending)
	} else if settled {
		s.manage()
	}
	s.write()
	s.plan.changed = !apiequality.Semantic.DeepEqual(s.plan.status, job.Status)
	return s.plan
}

func suspended(job *batchv1.Job) bool { return job.Spec.Suspend != nil && *job.Spec.Suspend }

// condition is a job's condition that is true; nil if it has none of the types.
func condition(st *batchv1.JobStatus, types ...batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range st.Conditions {
		if c := &st.Conditions[i]; c.Status == corev1.ConditionTrue && slices.Contains(types, c.Type) {
			return c
		}
	}
	return nil
}

// finished is the condition that says that the job has ended for good.
func finished(job *batchv1.Job) *batchv1.JobCondition {
	return condition(&job.Status, batchv1.JobComplete, batchv1.JobFailed)
}

func (s *step) stamp() metav1.Time { return metav1.NewTime(s.now.Truncate(time.Second)) }

func (s *step) set(t batchv1.JobConditionType, status corev1.ConditionStatus, reason, message string) bool {
	c := batchv1.JobCondition{Type: t, Status: status, Reason: reason, Message: message, LastProbeTime: s.stamp(), LastTransitionTime: s.stamp()}
	for i := range s.plan.status.Conditions {
		if old := &s.plan.status.Conditions[i]; old.Type == t {
			if old.Status == status && old.Reason == reason {
				return false
			}
			*old = c
			return true
		}
	}
	if status == corev1.ConditionFalse {
		return false // a condition that was never set need not be set to false
	}
	s.plan.status.Conditions = append(s.plan.status.Conditions, c)
	return true
}

// suspension updates the condition Suspended and the start time.
func (s *step) suspension() {
	if condition(&s.plan.status, batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet) != nil {
		return
	}
	st := &s.plan.status
	if suspended(s.job) {
		if s.set(batchv1.JobSuspended, corev1.ConditionTrue, "JobSuspended", "Job suspended") {
			s.say(corev1.EventTypeNormal, "Suspended", "Job suspended")
		}
		return
	}
	if s.set(batchv1.JobSuspended, corev1.ConditionFalse, "JobResumed", "Job resumed") {
		s.say(corev1.EventTypeNormal, "Resumed", "Job resumed")
		st.StartTime = nil // activeDeadlineSeconds counts anew after the suspension
	}
	if st.StartTime == nil {
		start := s.stamp()
		st.StartTime = &start
	}
}

func (s *step) say(kind, reason, message string) {
	s.plan.events = append(s.plan.events, event{kind, reason, message})
}

// ending is the condition that says how the job will end; nil while it goes on.
func (s *step) ending() *batchv1.JobCondition {
	if c := condition(&s.plan.status, batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet); c != nil {
		return c
	}
	target, reason, message := s.outcome()
	if reason == "" {
		return nil
	}
	s.set(target, corev1.ConditionTrue, reason, message)
	return condition(&s.plan.status, target)
}

// outcome decides whether the job ends, and how.
func (s *step) outcome() (target batchv1.JobConditionType, reason, message string) {
	const fail, success = batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet
	spec := &s.job.Spec
	switch {
	case s.failJob != "":
		return fail, batchv1.JobReasonPodFailurePolicy, s.failJob
	case spec.BackoffLimit != nil && s.failedSoFar() > *spec.BackoffLimit, tooManyRestarts(s.job, s.active):
		return fail, batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit"
	case s.late():
		return fail, batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline"
	case spec.MaxFailedIndexes != nil && len(s.failedIndexes) > int(*spec.MaxFailedIndexes):
		return fail, batchv1.JobReasonMaxFailedIndexesExceeded, "Job has exceeded the specified maximal number of failed indexes"
	case len(s.failedIndexes) > 0 && len(s.failedIndexes)+len(s.completed) >= limitOf(s.job):
		return fail, batchv1.JobReasonFailedIndexes, "Job has failed indexes"
	}
	if why := successPolicyMet(s.job, s.completed); why != "" {
		return success, batchv1.JobReasonSuccessPolicy, why
	}
	switch {
	case spec.Completions != nil && s.succeededSoFar() >= *spec.Completions,
		spec.Completions == nil && s.succeededSoFar() > 0 && len(s.active) == 0:
		return success, batchv1.JobReasonCompletionsReached, "Reached expected number of succeeded pods"
	}
	return "", "", ""
}

// late reports whether the deadline has passed; if it has not, the job is queued again for then.
func (s *step) late() bool {
	if s.job.Spec.ActiveDeadlineSeconds == nil || suspended(s.job) || s.plan.status.StartTime == nil {
		return false
	}
	began := s.began
	if !s.plan.status.StartTime.Equal(s.job.Status.StartTime) { // it starts in this step, or starts anew
		began = s.plan.status.StartTime.Time
	}
	left := began.Add(time.Duration(*s.job.Spec.ActiveDeadlineSeconds) * time.Second).Sub(s.now)
	if left > 0 {
		s.again(left)
	}
	return left <= 0
}

func (s *step) again(wait time.Duration) {
	if s.plan.lookAgain == 0 || wait < s.plan.lookAgain {
		s.plan.lookAgain = wait
	}
}

// finish ends the pods that still run, and, when all have ended and are counted, the job.
func (s *step) finish(how *batchv1.JobCondition) {
	target, reason, message := how.Type, how.Reason, how.Message
	if s.settled {
		s.plan.end = s.active
	}
	s.plan.lookAgain = 0
	if len(s.active) > 0 || s.terminating > 0 || s.unfinished() {
		return
	}
	if target == batchv1.JobFailureTarget {
		s.set(batchv1.JobFailed, corev1.ConditionTrue, reason, message)
		s.say(corev1.EventTypeWarning, reason, message)
		return
	}
	s.set(batchv1.JobComplete, corev1.ConditionTrue, reason, message)
	s.say(corev1.EventTypeNormal, "Completed", "Job completed")
	at := s.stamp()
	s.plan.status.CompletionTime = &at
}

// write puts the numbers into the status.
func (s *step) write() {
	st := &s.plan.status
	st.Active, st.Succeeded, st.Failed = int32(len(s.active)), s.succeeded, s.failed
	st.Ready, st.Terminating = &s.ready, &s.terminating
	st.UncountedTerminatedPods = &s.uncounted
	if isIndexed(s.job) {
		st.CompletedIndexes = s.completed.String()
		if s.job.Spec.BackoffLimitPerIndex != nil {
			failed := s.failedIndexes.String()
			st.FailedIndexes = &failed
		}
	}
}

// manage brings the number of active pods to what is wanted.
func (s *step) manage() {
	if suspended(s.job) {
		s.plan.remove = s.active[:min(len(s.active), burst)]
		return
	}
	stay := s.active
	if isIndexed(s.job) {
		stay = s.dropSurplusIndexes()
	}
	target := s.target(len(stay))
	if over := len(stay) - target; over > 0 {
		s.plan.remove = append(s.plan.remove, pods.ForDeletion(stay, stay, s.now)[:min(over, burst)]...)
		return
	}
	missing := target - len(stay)
	if onlyFailed(s.job) {
		missing -= int(s.terminating)
	}
	if missing = min(missing, burst); missing > 0 {
		s.make(stay, missing)
	}
}

// target is how many pods should run at once.
func (s *step) target(active int) int {
	parallel := 1
	if p := s.job.Spec.Parallelism; p != nil {
		parallel = int(*p)
	}
	if s.job.Spec.Completions == nil {
		if s.succeededSoFar() > 0 { // the work is done: running pods may end, no new ones start
			return min(active, parallel)
		}
		return parallel
	}
	return max(min(parallel, limitOf(s.job)-int(s.succeededSoFar())-len(s.failedIndexes)), 0)
}

// make plans new pods, unless a back-off delays them.
func (s *step) make(active []*corev1.Pod, missing int) {
	if !isIndexed(s.job) {
		if wait := backoff(s.list, s.now, func(*corev1.Pod) bool { return true }); wait > 0 {
			s.again(wait)
			return
		}
		for range missing {
			s.plan.create = append(s.plan.create, want{index: -1})
		}
		return
	}
	busy := indexes{}
	for _, p := range active {
		busy[indexOf(p)] = struct{}{}
	}
	if onlyFailed(s.job) {
		for _, p := range s.list {
			if pods.Terminating(p) {
				busy[indexOf(p)] = struct{}{}
			}
		}
	}
	for ix := 0; ix < limitOf(s.job) && missing > 0; ix++ {
		if busy.has(ix) || s.completed.has(ix) || s.failedIndexes.has(ix) {
			continue
		}
		missing--
		if s.failures[ix] > 0 {
			if wait := backoff(s.list, s.now, func(p *corev1.Pod) bool { return indexOf(p) == ix }); wait > 0 {
				s.again(wait)
				continue
			}
		}
		s.plan.create = append(s.plan.create, want{index: ix, failures: s.failures[ix]})
	}
}

// dropSurplusIndexes removes pods whose index is completed, failed, out of range or run by another pod, and returns
// the others.
func (s *step) dropSurplusIndexes() (stay []*corev1.Pod) {
	seen := indexes{}
	ranked := pods.ForDeletion(s.active, s.active, s.now)
	slices.Reverse(ranked) // the best first
	for _, p := range ranked {
		ix := indexOf(p)
		if ix < 0 || ix >= limitOf(s.job) || seen.has(ix) || s.completed.has(ix) || s.failedIndexes.has(ix) {
			s.plan.remove = append(s.plan.remove, p)
			continue
		}
		seen[ix] = struct{}{}
		stay = append(stay, p)
	}
	return stay
}
