package objectmetrics

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/exposition"
)

// containers are the families of containers, and the same of init containers.
var containers = slices.Concat(
	containerFamilies("kube_pod_container", "container",
		func(o pod) []corev1.Container { return o.Spec.Containers }, func(o pod) []corev1.ContainerStatus { return o.Status.ContainerStatuses }),
	containerFamilies("kube_pod_init_container", "init container",
		func(o pod) []corev1.Container { return o.Spec.InitContainers }, func(o pod) []corev1.ContainerStatus { return o.Status.InitContainerStatuses }))

type state = *corev1.ContainerStatus

// containerFamilies are those of one list of containers. of is the word for such a container.
func containerFamilies(prefix, of string, specs func(pod) []corev1.Container, states func(pod) []corev1.ContainerStatus) []family[pod] {
	status := func(name, help string, each func(p page, s state)) family[pod] {
		return gauge(prefix+"_"+name, help, func(p page, o pod) {
			list := states(o)
			for i := range list {
				each(p, &list[i])
			}
		})
	}
	is := func(name, help string, what func(s state) bool) family[pod] {
		return status(name, help, func(p page, s state) { p.put(flag(what(s)), "container", s.Name) })
	}
	resources := func(name, help string, list func(*corev1.ResourceRequirements) corev1.ResourceList) family[pod] {
		return gauge(prefix+"_"+name, help, func(p page, o pod) {
			all := specs(o)
			for i := range all {
				p.amounts(list(&all[i].Resources), "container", all[i].Name, "node", o.Spec.NodeName)
			}
		})
	}
	return []family[pod]{
		gauge(prefix+"_info", "Information about "+of+"s in a pod.", func(p page, o pod) {
			list, all := states(o), specs(o)
			for i := range list {
				s, wanted := &list[i], ""
				if at := slices.IndexFunc(all, func(c corev1.Container) bool { return c.Name == s.Name }); at >= 0 {
					wanted = all[at].Image
				}
				p.put(1, "container", s.Name, "image_spec", wanted, "image", s.Image, "image_id", s.ImageID, "container_id", s.ContainerID)
			}
		}),
		is("status_waiting", "Describes whether the "+of+" is currently in waiting state.", func(s state) bool { return s.State.Waiting != nil }),
		status("status_waiting_reason", "Describes the reason the "+of+" is currently in waiting state.", func(p page, s state) {
			if w := s.State.Waiting; w != nil && w.Reason != "" {
				p.put(1, "container", s.Name, "reason", w.Reason)
			}
		}),
		is("status_running", "Describes whether the "+of+" is currently in running state.", func(s state) bool { return s.State.Running != nil }),
		is("status_terminated", "Describes whether the "+of+" is currently in terminated state.", func(s state) bool { return s.State.Terminated != nil }),
		status("status_terminated_reason", "Describes the reason the "+of+" is currently in terminated state.", func(p page, s state) {
			if e := s.State.Terminated; e != nil {
				p.put(1, "container", s.Name, "reason", e.Reason)
			}
		}),
		status("status_last_terminated_reason", "Describes the last reason the "+of+" was in terminated state.", func(p page, s state) {
			if e := s.LastTerminationState.Terminated; e != nil {
				p.put(1, "container", s.Name, "reason", e.Reason)
			}
		}),
		status("status_last_terminated_exitcode", "Describes the exit code for the last "+of+" in terminated state.", func(p page, s state) {
			if e := s.LastTerminationState.Terminated; e != nil {
				p.put(float64(e.ExitCode), "container", s.Name)
			}
		}),
		status("status_last_terminated_timestamp", "Last terminated time for a pod "+of+" in unix timestamp.", func(p page, s state) {
			if e := s.LastTerminationState.Terminated; e != nil {
				p.at(&e.FinishedAt, "container", s.Name)
			}
		}),
		is("status_ready", "Describes whether the "+of+"s readiness check succeeded.", func(s state) bool { return s.Ready }),
		{prefix + "_status_restarts_total", exposition.Counter, "The number of " + of + " restarts per container.", func(p page, o pod) {
			list := states(o)
			for i := range list {
				p.put(float64(list[i].RestartCount), "container", list[i].Name)
			}
		}},
		status("state_started", "Start time in unix timestamp for a pod "+of+".", func(p page, s state) {
			switch {
			case s.State.Running != nil:
				p.at(&s.State.Running.StartedAt, "container", s.Name)
			case s.State.Terminated != nil:
				p.at(&s.State.Terminated.StartedAt, "container", s.Name)
			}
		}),
		resources("resource_requests", "The number of requested request resource by an "+of+".", func(r *corev1.ResourceRequirements) corev1.ResourceList { return r.Requests }),
		resources("resource_limits", "The number of requested limit resource by an "+of+".", func(r *corev1.ResourceRequirements) corev1.ResourceList { return r.Limits }),
	}
}
