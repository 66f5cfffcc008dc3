package job

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/controller/pods"
)

// podCounts counts a job's pods. All numbers in a job's status come from here.
type podCounts struct {
	succeeded, failed        int32 // counted for good
	uncounted                batchv1.UncountedTerminatedPods
	completed, failedIndexes indexes       // of an Indexed job
	untrack                  []*corev1.Pod // may lose their finalizer once the counts are saved
	active                   []*corev1.Pod
	terminating              int32
	ready                    int32
	failJob                  string      // why the failure policy ends the job
	failures                 map[int]int // by index
}

func tracked(p *corev1.Pod) bool { return slices.Contains(p.Finalizers, batchv1.JobTrackingFinalizer) }

func isIndexed(job *batchv1.Job) bool {
	return job.Spec.CompletionMode != nil && *job.Spec.CompletionMode == batchv1.IndexedCompletion
}

func onlyFailed(job *batchv1.Job) bool {
	return job.Spec.PodReplacementPolicy != nil && *job.Spec.PodReplacementPolicy == batchv1.Failed
}

// failed reports whether a pod counts as a failure. One that was deleted does, too: it may never report how it ended.
func failed(job *batchv1.Job, p *corev1.Pod) bool {
	switch {
	case p.Status.Phase == corev1.PodFailed:
		return true
	case p.DeletionTimestamp == nil || p.Status.Phase == corev1.PodSucceeded:
		return false
	}
	return !onlyFailed(job) || p.Spec.NodeName == ""
}

func limitOf(job *batchv1.Job) int {
	if job.Spec.Completions == nil {
		return 0
	}
	return int(*job.Spec.Completions)
}

// count counts the pods, starting from the numbers in the job's status.
func count(job *batchv1.Job, list []*corev1.Pod) *podCounts {
	st := &job.Status
	t := &podCounts{succeeded: st.Succeeded, failed: st.Failed, completed: indexes{}, failedIndexes: indexes{}, failures: map[int]int{}}
	if isIndexed(job) {
		t.completed = parseIndexes(st.CompletedIndexes, limitOf(job))
		if st.FailedIndexes != nil {
			t.failedIndexes = parseIndexes(*st.FailedIndexes, limitOf(job))
		}
	}
	t.countUntracked(st.UncountedTerminatedPods, list)
	for _, p := range list {
		t.add(job, p)
	}
	if isIndexed(job) {
		t.failIndexes(job)
		t.succeeded = int32(len(t.completed))
	}
	return t
}

// countUntracked adds the UIDs whose pods have lost their finalizer, or are deleted, to the numbers.
func (t *podCounts) countUntracked(u *batchv1.UncountedTerminatedPods, list []*corev1.Pod) {
	if u == nil {
		return
	}
	held := map[types.UID]bool{}
	for _, p := range list {
		if tracked(p) {
			held[p.UID] = true
		}
	}
	for _, uid := range u.Succeeded {
		if held[uid] {
			t.uncounted.Succeeded = append(t.uncounted.Succeeded, uid)
		} else {
			t.succeeded++
		}
	}
	for _, uid := range u.Failed {
		if held[uid] {
			t.uncounted.Failed = append(t.uncounted.Failed, uid)
		} else {
			t.failed++
		}
	}
}

// add counts one pod.
func (t *podCounts) add(job *batchv1.Job, p *corev1.Pod) {
	switch {
	case p.Status.Phase == corev1.PodSucceeded:
		if tracked(p) {
			t.success(job, p)
		}
		return
	case failed(job, p):
		t.failure(job, p)
	case pods.Active(p):
		t.active = append(t.active, p)
		if pods.Ready(p) {
			t.ready++
		}
	}
	if pods.Terminating(p) {
		t.terminating++
	}
}

func (t *podCounts) success(job *batchv1.Job, p *corev1.Pod) {
	t.untrack = append(t.untrack, p)
	if isIndexed(job) {
		if ix := indexOf(p); ix >= 0 && ix < limitOf(job) && !t.failedIndexes.has(ix) {
			t.completed[ix] = struct{}{}
		}
		return
	}
	if !slices.Contains(t.uncounted.Succeeded, p.UID) {
		t.uncounted.Succeeded = append(t.uncounted.Succeeded, p.UID)
	}
}

func (t *podCounts) failure(job *batchv1.Job, p *corev1.Pod) {
	if p.DeletionTimestamp != nil && !tracked(p) {
		return // it was surplus, or was counted already
	}
	action, why := failurePolicyOf(job, p)
	if ix := indexOf(p); ix >= 0 && action != batchv1.PodFailurePolicyActionIgnore {
		t.failures[ix] = max(t.failures[ix], failuresBefore(p)+1)
		if action == batchv1.PodFailurePolicyActionFailIndex && isIndexed(job) && ix < limitOf(job) {
			t.failedIndexes[ix] = struct{}{}
		}
	}
	if action == batchv1.PodFailurePolicyActionFailJob && t.failJob == "" {
		t.failJob = why
	}
	if !tracked(p) {
		return // it was counted
	}
	t.untrack = append(t.untrack, p)
	if action != batchv1.PodFailurePolicyActionIgnore && !slices.Contains(t.uncounted.Failed, p.UID) {
		t.uncounted.Failed = append(t.uncounted.Failed, p.UID)
	}
}

// failIndexes marks the indexes as failed that have exceeded backoffLimitPerIndex.
func (t *podCounts) failIndexes(job *batchv1.Job) {
	limit := job.Spec.BackoffLimitPerIndex
	if limit == nil {
		return
	}
	for ix, n := range t.failures {
		if ix < limitOf(job) && n > int(*limit) && !t.completed.has(ix) {
			t.failedIndexes[ix] = struct{}{}
		}
	}
	for ix := range t.failedIndexes {
		delete(t.completed, ix)
	}
}

// succeededSoFar and failedSoFar include pods that are not in the status's numbers yet.
func (t *podCounts) succeededSoFar() int32 { return t.succeeded + int32(len(t.uncounted.Succeeded)) }
func (t *podCounts) failedSoFar() int32    { return t.failed + int32(len(t.uncounted.Failed)) }

// unfinished reports whether pods are still to be counted.
func (t *podCounts) unfinished() bool {
	return len(t.uncounted.Succeeded)+len(t.uncounted.Failed)+len(t.untrack) > 0
}
