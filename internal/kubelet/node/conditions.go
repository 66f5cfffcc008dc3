package node

import (
	"fmt"
	"strings"
	"time"

	"minik8s/internal/api"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The thresholds of the pressure conditions. Kubernetes counts a disk as full at a tenth free; here it must also be
// short in bytes, because a tenth of a large disk suffices for many pods.
const (
	lowMemory = 100 << 20
	lowDisk   = 2 << 30
	lowPids   = 1000
)

// conditions are the machine's conditions now, in Kubernetes' words.
func (h hostInfo) conditions() []corev1.NodeCondition {
	size, free := h.disk()
	memory := meminfo("MemAvailable")
	return []corev1.NodeCondition{
		pressure(corev1.NodeMemoryPressure, memory > 0 && memory < lowMemory,
			"KubeletHasInsufficientMemory", "KubeletHasSufficientMemory", "memory available"),
		pressure(corev1.NodeDiskPressure, size > 0 && free < size/10 && free < lowDisk,
			"KubeletHasDiskPressure", "KubeletHasNoDiskPressure", "disk pressure"),
		pressure(corev1.NodePIDPressure, pidsLeft() < lowPids,
			"KubeletHasInsufficientPID", "KubeletHasSufficientPID", "PID available"),
	}
}

// readiness is the Ready condition.
func (n *Manager) readiness() corev1.NodeCondition {
	if n.shuttingDown.Load() {
		return corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady", Message: "node is shutting down"}
	}
	return corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"}
}

func pressure(t corev1.NodeConditionType, on bool, bad, good, what string) corev1.NodeCondition {
	c := corev1.NodeCondition{Type: t, Status: corev1.ConditionFalse, Reason: good, Message: "kubelet has sufficient " + what}
	if t == corev1.NodeDiskPressure {
		c.Message = "kubelet has no " + what
	}
	if on {
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, bad, "kubelet has insufficient "+what
		if t == corev1.NodeDiskPressure {
			c.Message = "kubelet has " + what
		}
	}
	return c
}

// conditions are those of the machine, of the kubelet and of its network.
func (n *Manager) conditions() []corev1.NodeCondition {
	list := append(n.host.conditions(), n.readiness())
	if n.cfg.Network != nil {
		list = append(list, networkCondition(n.cfg.Network.Trouble()))
	}
	return list
}

func networkCondition(stopped, partly []string) corev1.NodeCondition {
	c := corev1.NodeCondition{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionFalse}
	switch {
	case len(stopped) > 0:
		c.Status, c.Reason = corev1.ConditionTrue, api.ReasonHostPacketFilter
		c.Message = "the host's packet filter stops pods' traffic: " + someOf(stopped)
	case len(partly) > 0:
		c.Reason = api.ReasonPodTrafficFiltered
		c.Message = "the host's packet filter stops a part of pods' traffic: " + someOf(partly)
	default:
		c.Reason, c.Message = "PodTrafficAccepted", "nothing on the host stops pods' traffic"
	}
	return c
}

// someOf joins the first few of a list.
func someOf(list []string) string {
	const most = 5
	if more := len(list) - most; more > 0 {
		return fmt.Sprintf("%s; and %d more", strings.Join(list[:most], "; "), more)
	}
	return strings.Join(list, "; ")
}

// setNodeCondition sets a condition; its time of transition stays if its status does not change.
func setNodeCondition(st *corev1.NodeStatus, c corev1.NodeCondition, now time.Time) {
	c.LastHeartbeatTime = metav1.NewTime(now).Rfc3339Copy()
	c.LastTransitionTime = c.LastHeartbeatTime
	for i := range st.Conditions {
		if st.Conditions[i].Type == c.Type {
			if st.Conditions[i].Status == c.Status {
				c.LastTransitionTime = st.Conditions[i].LastTransitionTime
			}
			st.Conditions[i] = c
			return
		}
	}
	st.Conditions = append(st.Conditions, c)
}

// saysReadiness reports whether the Node's status says what is so of Ready.
func (n *Manager) saysReadiness(node *corev1.Node) bool {
	want := n.readiness()
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == want.Type {
			return c.Status == want.Status
		}
	}
	return false
}
