package defaults

import (
	"maps"
	"math"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Kubernetes' defaults for workloads.
const (
	historyLimit     = 10
	progressDeadline = 600
	backoffLimit     = 6
)

// orSet sets a nil pointer to a value.
func orSet[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}

// PodTemplate sets the defaults of a PodTemplate object.
func PodTemplate(t *corev1.PodTemplate) { PodSpec(&t.Template.Spec) }

// ReplicaSet sets the defaults of a replica set.
func ReplicaSet(rs *appsv1.ReplicaSet) {
	orSet(&rs.Spec.Replicas, 1)
	PodSpec(&rs.Spec.Template.Spec)
}

// ReplicationController sets the defaults of a replication controller: one pod, and the labels of its template as
// selector and labels if it has none of its own.
func ReplicationController(rc *corev1.ReplicationController) {
	orSet(&rc.Spec.Replicas, 1)
	if rc.Spec.Template == nil {
		return
	}
	if len(rc.Spec.Selector) == 0 {
		rc.Spec.Selector = maps.Clone(rc.Spec.Template.Labels)
	}
	if len(rc.Labels) == 0 {
		rc.Labels = maps.Clone(rc.Spec.Template.Labels)
	}
	PodSpec(&rc.Spec.Template.Spec)
}

// Deployment sets the defaults of a deployment: rolling updates by a quarter, ten old revisions kept, ten minutes to
// make progress.
func Deployment(d *appsv1.Deployment) {
	orSet(&d.Spec.Replicas, 1)
	if d.Spec.Strategy.Type == "" {
		d.Spec.Strategy.Type = appsv1.RollingUpdateDeploymentStrategyType
	}
	if d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		if d.Spec.Strategy.RollingUpdate == nil {
			d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{}
		}
		orSet(&d.Spec.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		orSet(&d.Spec.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	orSet(&d.Spec.RevisionHistoryLimit, historyLimit)
	orSet(&d.Spec.ProgressDeadlineSeconds, progressDeadline)
	PodSpec(&d.Spec.Template.Spec)
}

// DaemonSet sets the defaults of a daemon set: rolling updates, one node at a time.
func DaemonSet(ds *appsv1.DaemonSet) {
	if ds.Spec.UpdateStrategy.Type == "" {
		ds.Spec.UpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType
	}
	if ds.Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		if ds.Spec.UpdateStrategy.RollingUpdate == nil {
			ds.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{}
		}
		orSet(&ds.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		orSet(&ds.Spec.UpdateStrategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	orSet(&ds.Spec.RevisionHistoryLimit, historyLimit)
	PodSpec(&ds.Spec.Template.Spec)
}

// Job sets the defaults of a job: one pod, six retries.
func Job(job *batchv1.Job) {
	s := &job.Spec
	if s.Completions == nil && s.Parallelism == nil {
		orSet(&s.Completions, 1)
	}
	orSet(&s.Parallelism, 1)
	if s.BackoffLimitPerIndex != nil {
		orSet(&s.BackoffLimit, math.MaxInt32)
	}
	orSet(&s.BackoffLimit, backoffLimit)
	orSet(&s.CompletionMode, batchv1.NonIndexedCompletion)
	orSet(&s.Suspend, false)
	if s.PodFailurePolicy != nil {
		orSet(&s.PodReplacementPolicy, batchv1.Failed)
		for i := range s.PodFailurePolicy.Rules {
			for j := range s.PodFailurePolicy.Rules[i].OnPodConditions {
				if c := &s.PodFailurePolicy.Rules[i].OnPodConditions[j]; c.Status == "" {
					c.Status = corev1.ConditionTrue
				}
			}
		}
	}
	orSet(&s.PodReplacementPolicy, batchv1.TerminatingOrFailed)
	if len(job.Labels) == 0 && len(s.Template.Labels) > 0 {
		job.Labels = maps.Clone(s.Template.Labels)
	}
	PodSpec(&s.Template.Spec)
}
