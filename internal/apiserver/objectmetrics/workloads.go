package objectmetrics

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

type deployment = *appsv1.Deployment

var deployments = of[deployment]{"deployments.apps", named[deployment]("deployment"), []family[deployment]{
	created[deployment]("kube_deployment"),
	deleted[deployment]("kube_deployment"),
	generation[deployment]("kube_deployment"),
	gauge("kube_deployment_owner", "Information about the Deployment's owner.", func(p page, d deployment) { p.owners(d) }),
	value("kube_deployment_spec_replicas", "Number of desired pods for a deployment.", func(d deployment) float64 { return number(d.Spec.Replicas) }),
	value("kube_deployment_spec_paused", "Whether the deployment is paused and will not be processed by the deployment controller.", func(d deployment) float64 { return flag(d.Spec.Paused) }),
	surge("max_unavailable", "Maximum number of unavailable replicas during a rolling update of a deployment.", false, func(r *appsv1.RollingUpdateDeployment) *intstr.IntOrString { return r.MaxUnavailable }),
	surge("max_surge", "Maximum number of replicas that can be scheduled above the desired number of replicas during a rolling update of a deployment.", true, func(r *appsv1.RollingUpdateDeployment) *intstr.IntOrString { return r.MaxSurge }),
	value("kube_deployment_status_replicas", "The number of replicas per deployment.", func(d deployment) float64 { return float64(d.Status.Replicas) }),
	value("kube_deployment_status_replicas_ready", "The number of ready replicas per deployment.", func(d deployment) float64 { return float64(d.Status.ReadyReplicas) }),
	value("kube_deployment_status_replicas_available", "The number of available replicas per deployment.", func(d deployment) float64 { return float64(d.Status.AvailableReplicas) }),
	value("kube_deployment_status_replicas_unavailable", "The number of unavailable replicas per deployment.", func(d deployment) float64 { return float64(d.Status.UnavailableReplicas) }),
	value("kube_deployment_status_replicas_updated", "The number of updated replicas per deployment.", func(d deployment) float64 { return float64(d.Status.UpdatedReplicas) }),
	value("kube_deployment_status_observed_generation", "The generation observed by the deployment controller.", func(d deployment) float64 { return float64(d.Status.ObservedGeneration) }),
	gauge("kube_deployment_status_condition", "The current status conditions of a deployment.", func(p page, d deployment) {
		for i := range d.Status.Conditions {
			c := &d.Status.Conditions[i]
			p.condition(string(c.Type), c.Status, "reason", c.Reason)
		}
	}),
}}

// surge is a bound of a rolling update as a number of pods.
func surge(name, help string, up bool, of func(*appsv1.RollingUpdateDeployment) *intstr.IntOrString) family[deployment] {
	return gauge("kube_deployment_spec_strategy_rollingupdate_"+name, help, func(p page, d deployment) {
		r := d.Spec.Strategy.RollingUpdate
		if r == nil || of(r) == nil || d.Spec.Replicas == nil {
			return
		}
		if n, err := intstr.GetScaledValueFromIntOrPercent(of(r), int(*d.Spec.Replicas), up); err == nil {
			p.put(float64(n))
		}
	})
}

type replicaSet = *appsv1.ReplicaSet

var replicaSets = of[replicaSet]{"replicasets.apps", named[replicaSet]("replicaset"), []family[replicaSet]{
	created[replicaSet]("kube_replicaset"),
	deleted[replicaSet]("kube_replicaset"),
	generation[replicaSet]("kube_replicaset"),
	gauge("kube_replicaset_owner", "Information about the ReplicaSet's owner.", func(p page, r replicaSet) { p.owners(r) }),
	value("kube_replicaset_spec_replicas", "Number of desired pods for a ReplicaSet.", func(r replicaSet) float64 { return number(r.Spec.Replicas) }),
	value("kube_replicaset_status_replicas", "The number of replicas per ReplicaSet.", func(r replicaSet) float64 { return float64(r.Status.Replicas) }),
	value("kube_replicaset_status_fully_labeled_replicas", "The number of fully labeled replicas per ReplicaSet.", func(r replicaSet) float64 { return float64(r.Status.FullyLabeledReplicas) }),
	value("kube_replicaset_status_ready_replicas", "The number of ready replicas per ReplicaSet.", func(r replicaSet) float64 { return float64(r.Status.ReadyReplicas) }),
	value("kube_replicaset_status_observed_generation", "The generation observed by the ReplicaSet controller.", func(r replicaSet) float64 { return float64(r.Status.ObservedGeneration) }),
}}

type replicationController = *corev1.ReplicationController

var replicationControllers = of[replicationController]{"replicationcontrollers", named[replicationController]("replicationcontroller"), []family[replicationController]{
	created[replicationController]("kube_replicationcontroller"),
	generation[replicationController]("kube_replicationcontroller"),
	gauge("kube_replicationcontroller_owner", "Information about the ReplicationController's owner.", func(p page, r replicationController) { p.owners(r) }),
	value("kube_replicationcontroller_spec_replicas", "Number of desired pods for a ReplicationController.", func(r replicationController) float64 { return number(r.Spec.Replicas) }),
	value("kube_replicationcontroller_status_replicas", "The number of replicas per ReplicationController.", func(r replicationController) float64 { return float64(r.Status.Replicas) }),
	value("kube_replicationcontroller_status_fully_labeled_replicas", "The number of fully labeled replicas per ReplicationController.", func(r replicationController) float64 { return float64(r.Status.FullyLabeledReplicas) }),
	value("kube_replicationcontroller_status_ready_replicas", "The number of ready replicas per ReplicationController.", func(r replicationController) float64 { return float64(r.Status.ReadyReplicas) }),
	value("kube_replicationcontroller_status_available_replicas", "The number of available replicas per ReplicationController.", func(r replicationController) float64 { return float64(r.Status.AvailableReplicas) }),
	value("kube_replicationcontroller_status_observed_generation", "The generation observed by the ReplicationController controller.", func(r replicationController) float64 { return float64(r.Status.ObservedGeneration) }),
}}

type daemonSet = *appsv1.DaemonSet

var daemonSets = of[daemonSet]{"daemonsets.apps", named[daemonSet]("daemonset"), []family[daemonSet]{
	created[daemonSet]("kube_daemonset"),
	generation[daemonSet]("kube_daemonset"),
	value("kube_daemonset_status_current_number_scheduled", "The number of nodes running at least one daemon pod and are supposed to.", func(d daemonSet) float64 { return float64(d.Status.CurrentNumberScheduled) }),
	value("kube_daemonset_status_desired_number_scheduled", "The number of nodes that should be running the daemon pod.", func(d daemonSet) float64 { return float64(d.Status.DesiredNumberScheduled) }),
	value("kube_daemonset_status_number_available", "The number of nodes that should be running the daemon pod and have one or more of the daemon pod running and available.", func(d daemonSet) float64 { return float64(d.Status.NumberAvailable) }),
	value("kube_daemonset_status_number_misscheduled", "The number of nodes running a daemon pod but are not supposed to.", func(d daemonSet) float64 { return float64(d.Status.NumberMisscheduled) }),
	value("kube_daemonset_status_number_ready", "The number of nodes that should be running the daemon pod and have one or more of the daemon pod running and ready.", func(d daemonSet) float64 { return float64(d.Status.NumberReady) }),
	value("kube_daemonset_status_number_unavailable", "The number of nodes that should be running the daemon pod and have none of the daemon pod running and available.", func(d daemonSet) float64 { return float64(d.Status.NumberUnavailable) }),
	value("kube_daemonset_status_updated_number_scheduled", "The total number of nodes that are running updated daemon pod.", func(d daemonSet) float64 { return float64(d.Status.UpdatedNumberScheduled) }),
	value("kube_daemonset_status_observed_generation", "The most recent generation observed by the daemon set controller.", func(d daemonSet) float64 { return float64(d.Status.ObservedGeneration) }),
}}

type job = *batchv1.Job

var jobs = of[job]{"jobs.batch", named[job]("job_name"), []family[job]{
	value("kube_job_info", "Information about job.", func(job) float64 { return 1 }),
	created[job]("kube_job"),
	gauge("kube_job_owner", "Information about the Job's owner.", func(p page, j job) { p.owners(j) }),
	value("kube_job_spec_parallelism", "The maximum desired number of pods the job should run at any given time.", func(j job) float64 { return number(j.Spec.Parallelism) }),
	gauge("kube_job_spec_completions", "The desired number of successfully finished pods the job should be run with.", func(p page, j job) {
		if j.Spec.Completions != nil {
			p.put(number(j.Spec.Completions))
		}
	}),
	gauge("kube_job_spec_active_deadline_seconds", "The duration in seconds relative to the startTime that the job may be active before the system tries to terminate it.", func(p page, j job) {
		if j.Spec.ActiveDeadlineSeconds != nil {
			p.put(float64(*j.Spec.ActiveDeadlineSeconds))
		}
	}),
	value("kube_job_status_active", "The number of actively running pods.", func(j job) float64 { return float64(j.Status.Active) }),
	value("kube_job_status_ready", "The number of ready pods that belong to this Job.", func(j job) float64 { return number(j.Status.Ready) }),
	value("kube_job_status_succeeded", "The number of pods which reached Phase Succeeded.", func(j job) float64 { return float64(j.Status.Succeeded) }),
	gauge("kube_job_status_failed", "The number of pods which reached Phase Failed and the reason for failure.", func(p page, j job) {
		if j.Status.Failed == 0 {
			p.put(0)
			return
		}
		reason := ""
		for i := range j.Status.Conditions {
			if j.Status.Conditions[i].Type == batchv1.JobFailed {
				reason = j.Status.Conditions[i].Reason
			}
		}
		p.put(float64(j.Status.Failed), "reason", reason)
	}),
	moment("kube_job_status_start_time", "StartTime represents time when the job was acknowledged by the Job Manager.", func(j job) *metav1.Time { return j.Status.StartTime }),
	moment("kube_job_status_completion_time", "CompletionTime represents time when the job was completed.", func(j job) *metav1.Time { return j.Status.CompletionTime }),
	ended("kube_job_complete", "The job has completed its execution.", batchv1.JobComplete),
	ended("kube_job_failed", "The job has failed its execution.", batchv1.JobFailed),
	ended("kube_job_status_suspended", "The number of pods which reached Phase Suspended.", batchv1.JobSuspended),
}}

// ended has one label, condition, for the status.
func ended(name, help string, kind batchv1.JobConditionType) family[job] {
	return gauge(name, help, func(p page, j job) {
		for i := range j.Status.Conditions {
			if c := &j.Status.Conditions[i]; c.Type == kind {
				p.oneOf("condition", lower(c.Status), statuses)
			}
		}
	})
}
