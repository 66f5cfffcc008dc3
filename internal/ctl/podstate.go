package ctl

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// podState is a pod in one word, as the STATUS column of get has it.
func podState(pod *corev1.Pod) string {
	state := string(pod.Status.Phase)
	if pod.Status.Reason != "" {
		state = pod.Status.Reason
	}
	for i := range pod.Status.InitContainerStatuses {
		if word := stateWord(&pod.Status.InitContainerStatuses[i]); word != "" && word != "Completed" {
			return "Init:" + word
		}
	}
	running := false
	for i := len(pod.Status.ContainerStatuses) - 1; i >= 0; i-- {
		s := &pod.Status.ContainerStatuses[i]
		if word := stateWord(s); word != "" {
			state = word
		} else if s.State.Running != nil && s.Ready {
			running = true
		}
	}
	if state == "Completed" && running {
		state = "Running"
	}
	if pod.DeletionTimestamp != nil {
		state = "Terminating"
	}
	if state == "" {
		state = "Unknown"
	}
	return state
}

// stateWord is why a container does not run, in one word; empty if it runs.
func stateWord(s *corev1.ContainerStatus) string {
	switch {
	case s.State.Waiting != nil:
		return s.State.Waiting.Reason
	case s.State.Terminated != nil:
		t := s.State.Terminated
		switch {
		case t.Reason != "":
			return t.Reason
		case t.Signal != 0:
			return fmt.Sprintf("Signal:%d", t.Signal)
		}
		return fmt.Sprintf("ExitCode:%d", t.ExitCode)
	}
	return ""
}

// podCondition finds a condition of a pod; nil if it has none of the type.
func podCondition(pod *corev1.Pod, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == t {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// nodeReady is a node's Ready condition; nil if it never reported.
func nodeReady(node *corev1.Node) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == corev1.NodeReady {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}

// settled says whether a pod has come to where waiting for it ends: it is ready, or has done its
// work. bad says that it has failed for good.
func settled(pod *corev1.Pod) (done, bad bool) {
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		return true, false
	case corev1.PodFailed:
		return true, true
	}
	ready := podCondition(pod, corev1.PodReady)
	return ready != nil && ready.Status == corev1.ConditionTrue, false
}

// restarts is how often a pod's containers were started again, together.
func restarts(pod *corev1.Pod) int {
	n := 0
	for _, s := range pod.Status.ContainerStatuses {
		n += int(s.RestartCount)
	}
	return n
}
