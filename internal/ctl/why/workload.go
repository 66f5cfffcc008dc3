package why

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"minik8s/internal/api"
	"minik8s/internal/ctl/brief"
)

// workload is what explain needs to know of an object that manages pods.
type workload struct {
	want, ready int32
	selector    *metav1.LabelSelector
	// done says how it ended, if it has finished.
	done string
	good bool
	// head replaces the numbers.
	head string
	// bad: it is not well, whatever the numbers are. why has the reasons, and other remarks.
	bad      bool
	why      []string
	advice   []string
	commands []string // of ctl, without "minik8sd ctl"
}

// fault adds a reason why a workload is not well although enough pods are ready.
func (w *workload) fault(format string, args ...any) {
	w.bad = true
	w.note(format, args...)
}

// note adds a remark that is shown even if all is well.
func (w *workload) note(format string, args ...any) {
	w.why = append(w.why, fmt.Sprintf(format, args...))
}

// rolling says how far new pods have replaced old ones, and that the old ones serve meanwhile. end says when they go.
func (w *workload) rolling(n progress, end string) {
	w.head = fmt.Sprintf("is rolling out: %d of %d pods are new, %d of them ready", n.fresh, w.want, n.ready)
	serve := ""
	if n.oldReady > 0 {
		serve = fmt.Sprintf(" (%d ready: they still serve)", n.oldReady)
	}
	w.fault("pods of an older template that are still there: %d%s; %s", n.old, serve, end)
}

// behind adds a fault if the status is about an older spec.
func (w *workload) behind(spec, status int64) {
	if status < spec {
		w.fault("its controller has not acted on its newest spec yet; is a master running?")
	}
}

// keepsPods reports whether an object is a workload.
func keepsPods(obj api.Object) bool {
	s := situation{kind: api.KindOf(obj), obj: obj}
	_, ok := s.workload()
	return ok
}

// workload reads a workload; false for objects that manage no pods.
func (s *situation) workload() (workload, bool) {
	switch o := s.obj.(type) {
	case *appsv1.ReplicaSet:
		w := workload{selector: o.Spec.Selector, want: ptr.Deref(o.Spec.Replicas, 1), ready: o.Status.ReadyReplicas}
		w.behind(o.Generation, o.Status.ObservedGeneration)
		return w, true
	case *corev1.ReplicationController:
		w := workload{selector: &metav1.LabelSelector{MatchLabels: o.Spec.Selector}, want: ptr.Deref(o.Spec.Replicas, 1), ready: o.Status.ReadyReplicas}
		w.behind(o.Generation, o.Status.ObservedGeneration)
		return w, true
	case *appsv1.Deployment:
		return s.deployment(o), true
	case *appsv1.DaemonSet:
		return s.daemonSet(o), true
	case *batchv1.Job:
		w := workload{selector: o.Spec.Selector, want: ptr.Deref(o.Spec.Completions, 1), ready: o.Status.Succeeded}
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

// heading describes a workload in one line.
func (s *situation) heading(w workload) string {
	_, job := s.obj.(*batchv1.Job)
	switch {
	case w.done != "":
		return s.name() + " is " + w.done
	case w.head != "":
		return s.name() + " " + w.head
	case job:
		return fmt.Sprintf("%s has %d of %d completions", s.name(), w.ready, w.want)
	}
	return fmt.Sprintf("%s has %d of %d pods ready", s.name(), w.ready, w.want)
}

// explainWorkload looks at the numbers, then the conditions, then the pod in the worst state. The reasons of that pod
// are the workload's.
func (s *situation) explainWorkload(w workload) Explanation {
	if s.obj.GetDeletionTimestamp() != nil {
		return s.workloadLeaving()
	}
	v := Explanation{Head: s.heading(w), Good: w.ready >= w.want && !w.bad, Why: w.why}
	if w.done != "" {
		v.Good = w.good
	}
	if !v.Good {
		if j, ok := s.obj.(*batchv1.Job); ok && w.done == "" {
			s.jobNow(&v, j)
		}
		s.badConditions(&v)
		s.blamePod(&v, w)
		if e := s.lastWarning(); e != nil {
			v.because("%s, %s: %s", e.Reason, s.ago(brief.EventTime(e)), brief.Clip(e.Message, 300))
		}
	}
	for _, c := range w.commands {
		v.try("%s", c)
	}
	for _, a := range w.advice {
		v.advise("%s", a)
	}
	v.try("describe %s", s.args())
	return v
}

// badConditions adds the problems in a workload's conditions.
func (s *situation) badConditions(v *Explanation) {
	for _, c := range conditionsOf(s.obj) {
		if c.Type == string(batchv1.JobSuspended) {
			continue // jobNow reports it
		}
		if bad := c.Status == metav1.ConditionFalse || strings.HasSuffix(c.Type, "Failure") || c.Type == "Failed"; bad && c.Message != "" {
			v.because("%s: %s", c.Reason, brief.Clip(c.Message, 300))
		}
	}
}

func isSuspended(job *batchv1.Job) bool { return job.Spec.Suspend != nil && *job.Spec.Suspend }

func runsNone(job *batchv1.Job) bool {
	return job.Spec.Parallelism != nil && *job.Spec.Parallelism == 0
}

// jobNow explains what an unfinished job is doing now, and how many failures and how much time it has left.
func (s *situation) jobNow(v *Explanation, job *batchv1.Job) {
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
	case runsNone(job):
		v.because("its parallelism is 0: it may run no pod")
		v.advise("set spec.parallelism in its manifest to how many pods may run at once, then: minik8sd ctl apply -f FILE")
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
	case runsNone(job):
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
