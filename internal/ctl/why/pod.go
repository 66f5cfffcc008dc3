package why

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/table"
	"minik8s/internal/ctl/brief"
)

func (s *situation) explainPod(pod *corev1.Pod) Explanation {
	if pod.DeletionTimestamp != nil {
		return s.podLeaving(pod)
	}
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		v := Explanation{Head: s.name() + " has finished: every container ended with exit code 0", Good: true}
		v.try("logs %s%s", pod.Name, brief.Namespace(pod.Namespace))
		return v
	case corev1.PodFailed:
		return s.podFailed(pod)
	}
	if pod.Spec.NodeName == "" {
		return s.podUnscheduled(pod)
	}
	if v, bad := s.podNodeLost(pod); bad {
		return v
	}
	if v, bad := s.podContainers(pod); bad {
		return v
	}
	if pod.Status.Reason == "DeadlineExceeded" {
		v := Explanation{Head: s.name() + " is being ended: it ran longer than its activeDeadlineSeconds allow"}
		v.because("%s", pod.Status.Message)
		v.try("describe %s", s.args())
		return v
	}
	ready := brief.PodCondition(pod, corev1.PodReady)
	if ready != nil && ready.Status == corev1.ConditionTrue {
		v := Explanation{Head: s.name() + " runs and is ready", Good: true}
		s.restarted(&v, pod)
		v.try("logs %s%s", pod.Name, brief.Namespace(pod.Namespace))
		return v
	}
	v := Explanation{Head: fmt.Sprintf("%s is not ready yet: %s", s.name(), table.PodStatus(pod))}
	if ready != nil && ready.Message != "" {
		v.because("%s", ready.Message)
	}
	s.restarted(&v, pod)
	if e := s.lastWarning(); e != nil {
		v.because("%s, %s: %s", e.Reason, s.ago(brief.EventTime(e)), brief.Clip(e.Message, 300))
	}
	v.try("get %s -w", s.args())
	v.try("describe %s", s.args())
	return v
}

// filtered reports a host whose packet filter blocks traffic to or from the pod.
func (s *situation) filtered(v *Explanation, pod *corev1.Pod) {
	n := s.node(pod.Spec.NodeName)
	if n == nil || pod.Spec.HostNetwork || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return
	}
	for _, c := range n.Status.Conditions {
		switch {
		case c.Type != corev1.NodeNetworkUnavailable:
		case c.Status == corev1.ConditionTrue:
			v.Good = false
			v.because("its network on node %s is cut: %s", n.Name, c.Message)
			v.advise("have that rule accept the addresses of pods, %s, or take it away", n.Spec.PodCIDR)
			v.try("why node %s", n.Name)
		case c.Reason == api.ReasonPodTrafficFiltered && !v.Good: // this may or may not be the reason
			v.because("what it sends or is sent may be stopped on node %s: %s", n.Name, c.Message)
		}
	}
}

// restarted reports earlier runs, and what ended the last run of each container.
func (s *situation) restarted(v *Explanation, pod *corev1.Pod) {
	n := brief.Restarts(pod)
	if n == 0 {
		return
	}
	v.because("its containers were started again %d times; the log of the run before: logs --previous", n)
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		t := status.LastTerminationState.Terminated
		if t == nil || status.RestartCount == 0 {
			continue
		}
		if k, ok := s.killed(status.Name, t); ok {
			v.because("container %s was last killed %s because %s", status.Name, s.ago(t.FinishedAt.Time), k.why)
			v.advise("%s", k.advice)
		}
	}
}

func (s *situation) podFailed(pod *corev1.Pod) Explanation {
	v := Explanation{Head: s.name() + " has failed and will not be started again"}
	if pod.Status.Reason != "" || pod.Status.Message != "" {
		v.because("%s", strings.Trim(pod.Status.Reason+": "+pod.Status.Message, ": "))
	}
	s.unfit(&v, pod)
	failed, known := "", false // the container to look into; whether a kill explains the failure
	for i, status := range append(slices.Clone(pod.Status.InitContainerStatuses), pod.Status.ContainerStatuses...) {
		t := status.State.Terminated
		if t == nil || t.ExitCode == 0 {
			continue
		}
		kind := "container"
		if i < len(pod.Status.InitContainerStatuses) {
			kind = "init container"
		}
		v.because("%s %s %s", kind, status.Name, ended(t))
		if k, ok := s.killed(status.Name, t); ok {
			known = true
			v.because("it was killed because %s", k.why)
			v.advise("%s", k.advice)
		}
		s.lastWords(&v, status.Name)
		if failed == "" && t.ContainerID != "" {
			failed = status.Name
		}
	}
	if e := s.lastWarning("Unhealthy", "FailedPostStartHook", "FailedPreStopHook"); e != nil && !known {
		v.because("%s, %s: %s", e.Reason, s.ago(brief.EventTime(e)), brief.Clip(e.Message, 300))
	}
	if pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
		v.because("its restartPolicy is Never")
	}
	if failed != "" { // a container that never ran has no log
		v.try("logs %s -c %s%s", pod.Name, failed, brief.Namespace(pod.Namespace))
	}
	v.try("describe %s", s.args())
	v.try("delete %s", s.args())
	return v
}

// unfit advises on a pod that its node refused: the pod names the node itself, or the node changed after the pod was
// bound.
func (s *situation) unfit(v *Explanation, pod *corev1.Pod) {
	switch pod.Status.Reason {
	case "NodeAffinity":
		if n := s.node(pod.Spec.NodeName); n != nil {
			if labels := lacking(&pod.Spec, n); len(labels) > 0 {
				v.try("label nodes %s %s", n.Name, strings.Join(setting(n, labels), " "))
			}
		}
		v.advise("or take nodeName out of the manifest, so that the scheduler finds a node that fits; then create the pod anew")
	case "TaintToleration":
		v.advise("give the pod a toleration for the taint, or take it off the node; then create the pod anew")
	}
}

// podNodeLost explains a pod whose node has stopped reporting; false if the node is fine.
func (s *situation) podNodeLost(pod *corev1.Pod) (Explanation, bool) {
	if !s.onLostNode(pod) {
		return Explanation{}, false
	}
	node := s.node(pod.Spec.NodeName)
	v := Explanation{Head: fmt.Sprintf("%s is on node %s, which is not ready", s.name(), pod.Spec.NodeName)}
	if node == nil {
		v.because("there is no node %s", pod.Spec.NodeName)
		v.try("delete %s --force", s.args())
		v.try("get nodes")
		return v, true
	}
	if c := brief.NodeReady(node); c != nil {
		v.because("%s", strings.Trim(c.Reason+": "+c.Message, ": "))
	}
	v.because("what the pod's status says was last known then; its containers may run on")
	v.try("why node %s", node.Name)
	return v, true
}

// onLostNode reports whether a pod's node is not ready or does not exist. If no nodes are known, it returns false.
func (s *situation) onLostNode(pod *corev1.Pod) bool {
	if node := s.node(pod.Spec.NodeName); node != nil {
		return !isReady(node)
	}
	return len(s.nodes) > 0
}

func isReady(node *corev1.Node) bool {
	c := brief.NodeReady(node)
	return c != nil && c.Status == corev1.ConditionTrue
}
