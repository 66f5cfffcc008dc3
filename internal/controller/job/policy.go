package job

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/controller/pods"
)

// failurePolicyOf is the action of a job's failure policy for a failed pod, by the first rule that matches
// (KEP-3329).
func failurePolicyOf(job *batchv1.Job, p *corev1.Pod) (action batchv1.PodFailurePolicyAction, why string) {
	if job.Spec.PodFailurePolicy == nil || p.Status.Phase != corev1.PodFailed {
		return batchv1.PodFailurePolicyActionCount, ""
	}
	for i, rule := range job.Spec.PodFailurePolicy.Rules {
		if rule.OnExitCodes != nil {
			if c, code, ok := exitMatches(rule.OnExitCodes, p); ok {
				return rule.Action, fmt.Sprintf("Container %s for pod %s/%s failed with exit code %d matching %s rule at index %d",
					c, p.Namespace, p.Name, code, rule.Action, i)
			}
			continue
		}
		for _, want := range rule.OnPodConditions {
			if c := pods.Condition(p, want.Type); c != nil && c.Status == want.Status {
				return rule.Action, fmt.Sprintf("Pod %s/%s has condition %s matching %s rule at index %d", p.Namespace, p.Name, want.Type, rule.Action, i)
			}
		}
	}
	return batchv1.PodFailurePolicyActionCount, ""
}

// successPolicyMet says which rule of a job's success policy the completed indexes meet, the first one; empty if none
// (KEP-3998).
func successPolicyMet(job *batchv1.Job, completed indexes) (why string) {
	if job.Spec.SuccessPolicy == nil || len(completed) == 0 {
		return ""
	}
	for i, rule := range job.Spec.SuccessPolicy.Rules {
		have, need := len(completed), 0
		if rule.SucceededIndexes != nil {
			have = 0
			for ix := range eachIndex(*rule.SucceededIndexes, limitOf(job)) {
				need++
				if completed.has(ix) {
					have++
				}
			}
			if need == 0 {
				continue
			}
		}
		if rule.SucceededCount != nil {
			need = int(*rule.SucceededCount)
		}
		if have >= need {
			return fmt.Sprintf("Matched rules at index %d", i)
		}
	}
	return ""
}

func exitMatches(r *batchv1.PodFailurePolicyOnExitCodesRequirement, p *corev1.Pod) (container string, code int32, ok bool) {
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		t := c.State.Terminated
		if t == nil || t.ExitCode == 0 || r.ContainerName != nil && *r.ContainerName != c.Name {
			continue
		}
		if slices.Contains(r.Values, t.ExitCode) == (r.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn) {
			return c.Name, t.ExitCode, true
		}
	}
	return "", 0, false
}

// The back-off after failed pods.
const (
	firstBackoff = 10 * time.Second
	maxBackoff   = 10 * time.Minute
)

// backoff is how long to wait before a pod is created again, by the failures since the last success. which selects
// the pods that count.
func backoff(list []*corev1.Pod, now time.Time, which func(*corev1.Pod) bool) time.Duration {
	var success, last time.Time
	for _, p := range list {
		if p.Status.Phase == corev1.PodSucceeded && which(p) && endedAt(p).After(success) {
			success = endedAt(p)
		}
	}
	n := 0
	for _, p := range list {
		if at := endedAt(p); p.Status.Phase == corev1.PodFailed && which(p) && at.After(success) {
			n++
			if at.After(last) {
				last = at
			}
		}
	}
	if n == 0 {
		return 0
	}
	wait := maxBackoff
	if n < 8 {
		wait = min(firstBackoff<<(n-1), maxBackoff)
	}
	return max(last.Add(wait).Sub(now), 0)
}

// endedAt is when the last container of a pod ended; if that is not known, when the pod was deleted, or else created.
func endedAt(p *corev1.Pod) time.Time {
	var at time.Time
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if t := c.State.Terminated; t != nil && t.FinishedAt.After(at) {
			at = t.FinishedAt.Time
		}
	}
	switch {
	case !at.IsZero():
	case p.DeletionTimestamp != nil:
		at = p.DeletionTimestamp.Time
	default:
		at = p.CreationTimestamp.Time
		if c := pods.Condition(p, corev1.PodReady); c != nil && c.LastTransitionTime.After(at) {
			at = c.LastTransitionTime.Time
		}
	}
	return at
}

// tooManyRestarts reports whether the containers of pods that are restarted in place have failed too often.
func tooManyRestarts(job *batchv1.Job, list []*corev1.Pod) bool {
	if job.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyOnFailure || job.Spec.BackoffLimit == nil {
		return false
	}
	var n int32
	for _, p := range list {
		if p.Status.Phase != corev1.PodRunning && p.Status.Phase != corev1.PodPending {
			continue
		}
		for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			n += c.RestartCount
		}
	}
	limit := *job.Spec.BackoffLimit
	return n > 0 && n >= limit
}
