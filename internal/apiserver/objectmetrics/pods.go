package objectmetrics

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/exposition"
)

type pod = *corev1.Pod

var (
	phases  = []string{string(corev1.PodPending), string(corev1.PodSucceeded), string(corev1.PodFailed), string(corev1.PodUnknown), string(corev1.PodRunning)}
	reasons = []string{"Evicted", "NodeAffinity", "NodeLost", "Shutdown", "UnexpectedAdmissionError"}
	classes = []string{string(corev1.PodQOSBestEffort), string(corev1.PodQOSBurstable), string(corev1.PodQOSGuaranteed)}
)

var pods = of[pod]{"pods", func(o pod) string {
	return exposition.Labels("namespace", o.Namespace, "pod", o.Name, "uid", string(o.UID))
}, slices.Concat([]family[pod]{
	gauge("kube_pod_info", "Information about pod.", func(p page, o pod) {
		by := metav1.GetControllerOfNoCopy(o)
		if by == nil {
			by = &metav1.OwnerReference{}
		}
		p.put(1, "host_ip", o.Status.HostIP, "pod_ip", o.Status.PodIP, "node", o.Spec.NodeName, "created_by_kind", by.Kind,
			"created_by_name", by.Name, "priority_class", o.Spec.PriorityClassName, "host_network", word(o.Spec.HostNetwork))
	}),
	gauge("kube_pod_ips", "Pod IP addresses.", func(p page, o pod) {
		for _, a := range o.Status.PodIPs {
			family := "4"
			if slices.Contains([]byte(a.IP), ':') {
				family = "6"
			}
			p.put(1, "ip", a.IP, "ip_family", family)
		}
	}),
	gauge("kube_pod_owner", "Information about the Pod's owner.", func(p page, o pod) { p.owners(o) }),
	created[pod]("kube_pod"),
	deleted[pod]("kube_pod"),
	moment("kube_pod_start_time", "Start time in unix timestamp for a pod.", func(o pod) *metav1.Time { return o.Status.StartTime }),
	gauge("kube_pod_completion_time", "Completion time in unix timestamp for a pod.", func(p page, o pod) {
		var last metav1.Time
		for i := range o.Status.ContainerStatuses {
			end := o.Status.ContainerStatuses[i].State.Terminated
			if end == nil {
				return
			}
			if last.Before(&end.FinishedAt) {
				last = end.FinishedAt
			}
		}
		p.at(&last)
	}),
	gauge("kube_pod_restart_policy", "Describes the restart policy in use by this pod.", func(p page, o pod) { p.put(1, "type", string(o.Spec.RestartPolicy)) }),
	gauge("kube_pod_service_account", "The service account for a pod.", func(p page, o pod) { p.put(1, "service_account", o.Spec.ServiceAccountName) }),
	gauge("kube_pod_status_phase", "The pods current phase.", func(p page, o pod) { p.oneOf("phase", string(o.Status.Phase), phases) }),
	gauge("kube_pod_status_reason", "The pod status reasons.", func(p page, o pod) { p.oneOf("reason", o.Status.Reason, reasons) }),
	gauge("kube_pod_status_qos_class", "The pods current qosClass.", func(p page, o pod) { p.oneOf("qos_class", string(o.Status.QOSClass), classes) }),
	gauge("kube_pod_status_ready", "Describes whether the pod is ready to serve requests.", func(p page, o pod) { podCondition(p, o, corev1.PodReady) }),
	gauge("kube_pod_status_scheduled", "Describes the status of the scheduling process for the pod.", func(p page, o pod) { podCondition(p, o, corev1.PodScheduled) }),
	gauge("kube_pod_status_unschedulable", "Describes the unschedulable status for the pod.", func(p page, o pod) {
		if c := conditionOf(o, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			p.put(1)
		}
	}),
	since("kube_pod_status_scheduled_time", "Unix timestamp when pod moved into scheduled status.", corev1.PodScheduled),
	since("kube_pod_status_initialized_time", "Time when the pod is initialized.", corev1.PodInitialized),
	since("kube_pod_status_container_ready_time", "Time when all containers of the pod entered Ready state.", corev1.ContainersReady),
	since("kube_pod_status_ready_time", "Time when pod passed readiness probes.", corev1.PodReady),
}, containers)}

func conditionOf(o pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range o.Status.Conditions {
		if o.Status.Conditions[i].Type == kind {
			return &o.Status.Conditions[i]
		}
	}
	return nil
}

// podCondition has one label, condition, for the status.
func podCondition(p page, o pod, kind corev1.PodConditionType) {
	if c := conditionOf(o, kind); c != nil {
		p.oneOf("condition", lower(c.Status), statuses)
	}
}

// since is when a condition became true, of pods for which it is.
func since(name, help string, kind corev1.PodConditionType) family[pod] {
	return gauge(name, help, func(p page, o pod) {
		if c := conditionOf(o, kind); c != nil && c.Status == corev1.ConditionTrue {
			p.at(&c.LastTransitionTime)
		}
	})
}
