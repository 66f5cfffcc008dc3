package status

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/plan"
)

// setConditions writes the conditions that are the kubelet's, in the order in which Kubernetes lists
// them, and keeps all others. lastTransitionTime moves only when a condition's status does.
func setConditions(in plan.Input, st *corev1.PodStatus) {
	containers := containersReady(in, st)
	mine := []corev1.PodCondition{
		sandboxReady(in),
		podInitialized(in),
		podReady(in, st, containers),
		containers,
	}
	if st.Phase == corev1.PodSucceeded {
		mine[1].Reason = "PodCompleted"
	}
	var out []corev1.PodCondition
	for _, c := range mine {
		c.ObservedGeneration = in.Pod.Generation
		c.LastTransitionTime = metav1.NewTime(in.Now).Rfc3339Copy()
		if old := podspec.Condition(in.Pod.Status.Conditions, c.Type); old != nil && old.Status == c.Status {
			c.LastTransitionTime, c.LastProbeTime = old.LastTransitionTime, old.LastProbeTime
		}
		out = append(out, c)
	}
	for _, c := range in.Pod.Status.Conditions {
		if podspec.Condition(out, c.Type) == nil {
			out = append(out, c)
		}
	}
	if podspec.Condition(out, corev1.PodScheduled) == nil { // bound by its manifest, without a scheduler
		out = append(out, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
			ObservedGeneration: in.Pod.Generation, LastTransitionTime: metav1.NewTime(in.Now).Rfc3339Copy()})
	}
	st.Conditions = out
}

func sandboxReady(in plan.Input) corev1.PodCondition {
	c := corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse}
	if s := in.View.Sandbox; s != nil && s.Whole && len(s.Addresses) > 0 {
		c.Status = corev1.ConditionTrue
	}
	return c
}

// podInitialized is the Initialized condition; once the pod is to end it stays as it was.
func podInitialized(in plan.Input) corev1.PodCondition {
	c := corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}
	if in.Initialized() {
		return c
	}
	if old := podspec.Condition(in.Pod.Status.Conditions, c.Type); old != nil && in.Termination() != nil {
		return *old
	}
	c.Status, c.Reason = corev1.ConditionFalse, "ContainersNotInitialized"
	c.Message = fmt.Sprintf("containers with incomplete status: [%s]", strings.Join(in.Uninitialized(), " "))
	return c
}

// containersReady is the ContainersReady condition.
func containersReady(in plan.Input, st *corev1.PodStatus) corev1.PodCondition {
	c := corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}
	var unready []string
	for _, spec := range podspec.Containers(in.Pod) { // in the order of the spec, as Kubernetes
		if podspec.InitContainer(in.Pod, spec.Name) != nil && !podspec.IsSidecar(spec) {
			continue
		}
		if s := podspec.ContainerStatus(st, spec.Name); s == nil || !s.Ready {
			unready = append(unready, spec.Name)
		}
	}
	switch {
	case st.Phase == corev1.PodSucceeded:
		c.Status, c.Reason = corev1.ConditionFalse, "PodCompleted"
	case st.Phase == corev1.PodFailed:
		c.Status, c.Reason = corev1.ConditionFalse, "PodFailed"
	case len(unready) > 0:
		c.Status, c.Reason = corev1.ConditionFalse, "ContainersNotReady"
		c.Message = fmt.Sprintf("containers with unready status: [%s]", strings.Join(unready, " "))
	}
	return c
}

// podReady is the Ready condition: the containers and the readiness gates.
func podReady(in plan.Input, st *corev1.PodStatus, containers corev1.PodCondition) corev1.PodCondition {
	c := containers
	c.Type = corev1.PodReady
	if c.Status != corev1.ConditionTrue {
		return c
	}
	var why []string
	for _, gate := range in.Pod.Spec.ReadinessGates {
		switch g := podspec.Condition(st.Conditions, gate.ConditionType); {
		case g == nil:
			why = append(why, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate.ConditionType))
		case g.Status != corev1.ConditionTrue:
			why = append(why, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %s", gate.ConditionType, g.Status))
		}
	}
	if len(why) > 0 {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, "ReadinessGatesNotReady", strings.Join(why, ", ")
	}
	return c
}
