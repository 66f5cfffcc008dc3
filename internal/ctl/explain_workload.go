package ctl

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
)

// workload is what explain needs of an object that keeps pods.
type workload struct {
	selector    *metav1.LabelSelector
	want, ready int32
	// done says that nothing more is to come, and how it ended.
	done string
	good bool
}

// workloadOf reads a workload; false for objects that keep no pods.
func workloadOf(obj api.Object) (workload, bool) {
	value := func(n *int32) int32 {
		if n == nil {
			return 1
		}
		return *n
	}
	switch o := obj.(type) {
	case *appsv1.ReplicaSet:
		return workload{selector: o.Spec.Selector, want: value(o.Spec.Replicas), ready: o.Status.ReadyReplicas}, true
	case *appsv1.Deployment:
		return workload{selector: o.Spec.Selector, want: value(o.Spec.Replicas), ready: min(o.Status.UpdatedReplicas, o.Status.ReadyReplicas)}, true
	case *appsv1.DaemonSet:
		return workload{selector: o.Spec.Selector, want: o.Status.DesiredNumberScheduled, ready: o.Status.NumberReady}, true
	case *batchv1.Job:
		w := workload{selector: o.Spec.Selector, want: value(o.Spec.Completions), ready: o.Status.Succeeded}
		for _, c := range o.Status.Conditions {
			if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
				w.done = strings.TrimSpace(strings.ToLower(string(c.Type)) + ": " + c.Message)
				w.good = c.Type == batchv1.JobComplete
			}
		}
		return w, true
	}
	return workload{}, false
}

// explainWorkload goes from the numbers to the conditions, and from there to the first pod that is not
// well, whose own reasons are the workload's.
func (s situation) explainWorkload(w workload) verdict {
	if s.obj.GetDeletionTimestamp() != nil {
		return s.explainLeaving()
	}
	v := verdict{good: true}
	switch _, job := s.obj.(*batchv1.Job); {
	case w.done != "":
		v.head, v.good = s.name()+" is "+w.done, w.good
	case job:
		v.head = fmt.Sprintf("%s has %d of %d completions", s.name(), w.ready, w.want)
		v.good = w.ready >= w.want
	default:
		v.head = fmt.Sprintf("%s has %d of %d pods ready", s.name(), w.ready, w.want)
		v.good = w.ready >= w.want
	}
	if !v.good {
		if j, ok := s.obj.(*batchv1.Job); ok && w.done == "" {
			s.jobNow(&v, j)
		}
		for _, c := range conditionsOf(s.obj) {
			if c.Type == string(batchv1.JobSuspended) {
				continue // jobNow has said it
			}
			if bad := c.Status == metav1.ConditionFalse || strings.HasSuffix(c.Type, "Failure") || c.Type == "Failed"; bad && c.Message != "" {
				v.because("%s: %s", c.Reason, clip(c.Message, 300))
			}
		}
		s.blamePod(&v)
		if e := s.lastWarning(); e != nil {
			v.because("%s, %s: %s", e.Reason, s.ago(eventTime(e)), clip(e.Message, 300))
		}
	}
	v.try("describe %s", s.args())
	return v
}

// blamePod adds the reasons of the pod that stands worst.
func (s situation) blamePod(v *verdict) {
	sick := map[string]int{}
	var worst *verdict
	for _, p := range s.pods {
		pod := s
		pod.kind, pod.obj, pod.events = api.Pods, p, about(s.told, p)
		own := pod.explainPod(p)
		if own.good {
			continue
		}
		sick[podState(p)]++
		if worst == nil {
			worst = &own
			v.try("why %s", pod.args())
		}
	}
	if worst == nil {
		if job, ok := s.obj.(*batchv1.Job); len(s.pods) == 0 && !(ok && isSuspended(job)) {
			v.because("it has no pods")
		}
		return
	}
	var counts []string
	for status, n := range sick {
		counts = append(counts, fmt.Sprintf("%d %s", n, status))
	}
	slices.Sort(counts)
	v.because("of its %d pods: %s", len(s.pods), strings.Join(counts, ", "))
	v.why = append(v.why, worst.head)
	v.why = append(v.why, worst.why...)
}

// about are the events about a pod.
func about(events []*corev1.Event, pod *corev1.Pod) []*corev1.Event {
	var out []*corev1.Event
	for _, e := range events {
		if e.InvolvedObject.Name == pod.Name {
			out = append(out, e)
		}
	}
	return out
}

func isSuspended(job *batchv1.Job) bool { return job.Spec.Suspend != nil && *job.Spec.Suspend }

// jobNow tells what a job that has not ended does at this moment, and how much patience it has left.
func (s situation) jobNow(v *verdict, job *batchv1.Job) {
	since := ""
	for _, c := range job.Status.Conditions {
		switch c.Type {
		case batchv1.JobSuspended:
			since = " " + s.ago(c.LastTransitionTime.Time)
		case batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet:
			if c.Status == corev1.ConditionTrue {
				v.because("it is ending (%s): %s", c.Reason, c.Message)
			}
		}
	}
	st := &job.Status
	switch {
	case isSuspended(job):
		v.because("it was suspended%s: no pod of it runs", since)
		if st.Active > 0 {
			v.because("pods that are still being ended: %d", st.Active)
		}
		v.advise("set spec.suspend to false in its manifest, then: minik8sd ctl apply -f FILE")
		return
	case since != "":
		v.because("it was suspended before, and resumed%s", since)
	}
	ready := int32(0)
	if st.Ready != nil {
		ready = *st.Ready
	}
	switch {
	case st.Active > 0:
		v.because("its pods: %d active, %d of them ready", st.Active, ready)
	case st.Failed > 0:
		v.because("no pod of it is active: the next is made when the back-off ends, which is longer after each failure")
	default:
		v.because("no pod of it is active yet")
	}
	if limit := job.Spec.BackoffLimit; st.Failed > 0 && limit != nil && job.Spec.BackoffLimitPerIndex == nil {
		v.because("pods that have failed: %d; with more than %d it is given up", st.Failed, *limit)
	}
	if d := job.Spec.ActiveDeadlineSeconds; d != nil && st.StartTime != nil {
		v.because("its activeDeadlineSeconds end it %s at the latest", st.StartTime.Add(time.Duration(*d)*time.Second).UTC().Format(time.RFC3339))
	}
}
