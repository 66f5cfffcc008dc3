package table

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/podspec"
)

var podColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name must be unique within a namespace."},
	{Name: "Ready", Type: "string", Description: "The aggregate readiness state of this pod for accepting traffic."},
	{Name: "Status", Type: "string", Description: "The aggregate status of the containers in this pod."},
	{Name: "Restarts", Type: "string", Description: "The number of times the containers in this pod have been restarted and when the last container in this pod has restarted."},
	{Name: "Age", Type: "string", Description: "The time since the pod was created."},
	{Name: "IP", Type: "string", Priority: 1, Description: "The address of the pod."},
	{Name: "Node", Type: "string", Priority: 1, Description: "The node that the pod runs on."},
	{Name: "Nominated Node", Type: "string", Priority: 1, Description: "The node that the pod waits for room on."},
	{Name: "Readiness Gates", Type: "string", Priority: 1, Description: "How many of the pod's readiness gates are open."},
}

func podRow(pod *corev1.Pod, now time.Time) []any {
	s := summarize(pod)
	restarts := strconv.Itoa(s.restarts)
	if s.restarts != 0 && !s.lastRestart.IsZero() {
		restarts = fmt.Sprintf("%d (%s ago)", s.restarts, since(s.lastRestart, now))
	}
	return []any{
		pod.Name, fmt.Sprintf("%d/%d", s.ready, s.total), s.status, restarts, since(pod.CreationTimestamp.Time, now),
		or(podIP(pod), none), or(pod.Spec.NodeName, none), or(pod.Status.NominatedNodeName, none), gates(pod),
	}
}

func podIP(pod *corev1.Pod) string {
	if len(pod.Status.PodIPs) > 0 {
		return pod.Status.PodIPs[0].IP
	}
	return pod.Status.PodIP
}

func gates(pod *corev1.Pod) string {
	if len(pod.Spec.ReadinessGates) == 0 {
		return none
	}
	open := 0
	for _, g := range pod.Spec.ReadinessGates {
		if conditionTrue(pod, g.ConditionType) {
			open++
		}
	}
	return fmt.Sprintf("%d/%d", open, len(pod.Spec.ReadinessGates))
}

func conditionTrue(pod *corev1.Pod, of corev1.PodConditionType) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == of {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// PodStatus is the one word by which kubectl sums a pod up: "Running", "CrashLoopBackOff", "Init:0/2".
func PodStatus(pod *corev1.Pod) string { return summarize(pod).status }

// summary is a pod in a few words.
type summary struct {
	status       string
	ready, total int
	restarts     int
	lastRestart  time.Time
}

func summarize(pod *corev1.Pod) summary {
	s := summary{status: or(pod.Status.Reason, string(pod.Status.Phase)), total: len(pod.Spec.Containers)}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated {
			s.status = corev1.PodReasonSchedulingGated
		}
	}
	sidecars := map[string]bool{}
	for i := range pod.Spec.InitContainers {
		if podspec.IsSidecar(&pod.Spec.InitContainers[i]) {
			sidecars[pod.Spec.InitContainers[i].Name] = true
			s.total++
		}
	}
	if initializing := s.initContainers(pod, sidecars); !initializing || conditionTrue(pod, corev1.PodInitialized) {
		s.containers(pod, sidecars)
	}
	if pod.DeletionTimestamp != nil {
		switch {
		case pod.Status.Reason == "NodeLost":
			s.status = "Unknown"
		case pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed:
			s.status = "Terminating"
		}
	}
	return s
}

// initContainers says whether the pod is still at its init containers, and notes how far it is.
func (s *summary) initContainers(pod *corev1.Pod, sidecars map[string]bool) bool {
	for i := range pod.Status.InitContainerStatuses {
		c := &pod.Status.InitContainerStatuses[i]
		s.restarted(c)
		sidecar := sidecars[c.Name]
		switch {
		case c.State.Terminated != nil && c.State.Terminated.ExitCode == 0 && !sidecar:
			continue
		case sidecar && c.Started != nil && *c.Started:
			if c.Ready {
				s.ready++
			}
			continue
		case c.State.Terminated != nil:
			s.status = "Init:" + or(c.State.Terminated.Reason, exit(c.State.Terminated))
		case c.State.Waiting != nil && c.State.Waiting.Reason != "" && c.State.Waiting.Reason != "PodInitializing":
			s.status = "Init:" + c.State.Waiting.Reason
		default:
			s.status = fmt.Sprintf("Init:%d/%d", i, len(pod.Spec.InitContainers))
		}
		return true
	}
	return false
}

func (s *summary) containers(pod *corev1.Pod, sidecars map[string]bool) {
	// From here on only restarts of what still runs count.
	s.restarts, s.lastRestart = 0, time.Time{}
	for i := range pod.Status.InitContainerStatuses {
		if c := &pod.Status.InitContainerStatuses[i]; sidecars[c.Name] {
			s.restarted(c)
		}
	}
	running := false
	for i := len(pod.Status.ContainerStatuses) - 1; i >= 0; i-- {
		c := &pod.Status.ContainerStatuses[i]
		s.restarted(c)
		switch {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "":
			s.status = c.State.Waiting.Reason
		case c.State.Terminated != nil:
			s.status = or(c.State.Terminated.Reason, exit(c.State.Terminated))
		case c.Ready && c.State.Running != nil:
			running = true
			s.ready++
		}
	}
	if s.status == "Completed" && running { // some have ended, others have not
		if s.status = "NotReady"; conditionTrue(pod, corev1.PodReady) {
			s.status = "Running"
		}
	}
}

func (s *summary) restarted(c *corev1.ContainerStatus) {
	s.restarts += int(c.RestartCount)
	if t := c.LastTerminationState.Terminated; t != nil && t.FinishedAt.After(s.lastRestart) {
		s.lastRestart = t.FinishedAt.Time
	}
}

func exit(t *corev1.ContainerStateTerminated) string {
	if t.Signal != 0 {
		return "Signal:" + strconv.Itoa(int(t.Signal))
	}
	return "ExitCode:" + strconv.Itoa(int(t.ExitCode))
}

// The columns of the seeds, word for word.
func podColumnsExtended() []metav1.TableColumnDefinition {
	return texts("Name", "UID", "Status", "Ipv4", "Node", "Ports", "Cpu", "Memory", "Last Sync Time", "Error")
}

func podColumnsCompact() []metav1.TableColumnDefinition {
	return texts("NAME", "UID", "NODE", "STATUS", "IP")
}

// podRowExtended: Cpu and Memory are what the pod requests, as its own object tells no more.
func podRowExtended(pod *corev1.Pod, _ time.Time) []any {
	return []any{
		pod.Namespace + "/" + pod.Name, string(pod.UID), podStateExtended(pod), or(podIP(pod), "-"), or(pod.Spec.NodeName, "-"),
		or(portsExtended(pod), "-"), requested(pod, corev1.ResourceCPU), requested(pod, corev1.ResourceMemory),
		rfc3339(podSync(pod)), or(podError(pod), "-"),
	}
}

func podRowCompact(pod *corev1.Pod, _ time.Time) []any {
	return []any{pod.Name, string(pod.UID), pod.Spec.NodeName, or(string(pod.Status.Phase), "Unknown"), podIP(pod)}
}

// podStateExtended is the pod's state in the words of the seed system that has this layout: Created, Scheduled, ContainerCreating, Running, Error,
// Deleted, Unknown. That system restarts everything for ever, so it has no word for success; ours is shown.
func podStateExtended(pod *corev1.Pod) string {
	switch {
	case pod.DeletionTimestamp != nil:
		return "Deleted"
	case pod.Status.Phase == corev1.PodFailed || podError(pod) != "" && pod.Spec.NodeName != "":
		return "Error"
	case pod.Status.Phase == corev1.PodRunning || pod.Status.Phase == corev1.PodSucceeded:
		return string(pod.Status.Phase)
	case pod.Status.Phase != corev1.PodPending:
		return "Unknown"
	case pod.Spec.NodeName == "":
		return "Created"
	case len(pod.Status.ContainerStatuses) == 0:
		return "Scheduled"
	}
	return "ContainerCreating"
}

// podError is what is wrong with a pod, in a line.
func podError(pod *corev1.Pod) string {
	for i := range pod.Status.ContainerStatuses {
		w := pod.Status.ContainerStatuses[i].State.Waiting
		if w != nil && w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			return strings.TrimSpace(w.Reason + " " + w.Message)
		}
	}
	if pod.Status.Message != "" {
		return pod.Status.Message
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}

// podSync is when the pod's state last changed.
func podSync(pod *corev1.Pod) time.Time {
	last := pod.CreationTimestamp.Time
	for _, c := range pod.Status.Conditions {
		if c.LastTransitionTime.After(last) {
			last = c.LastTransitionTime.Time
		}
	}
	return last
}

// hostPortsAnnotation is where the kubelet says which random ports it gave.
const hostPortsAnnotation = "minik8s.io/host-ports"

func portsExtended(pod *corev1.Pod) string {
	if given := pod.Annotations[hostPortsAnnotation]; given != "" { // 80:40123/TCP is container:host here
		var all []string
		for one := range strings.SplitSeq(given, ",") {
			container, host, _ := strings.Cut(one, ":")
			host, _, _ = strings.Cut(host, "/")
			all = append(all, host+":"+container)
		}
		return strings.Join(all, ",")
	}
	var all []string
	for i := range pod.Spec.Containers {
		for _, p := range pod.Spec.Containers[i].Ports {
			if s := strconv.Itoa(int(p.ContainerPort)); p.HostPort != 0 {
				all = append(all, strconv.Itoa(int(p.HostPort))+":"+s)
			} else {
				all = append(all, s)
			}
		}
	}
	return strings.Join(all, ",")
}

func requested(pod *corev1.Pod, name corev1.ResourceName) string {
	sum := podspec.Requests(&pod.Spec)
	if _, ok := sum[name]; !ok {
		return "-"
	}
	q := sum.Quantity(name)
	return q.String()
}

// texts are columns that hold text and are always shown.
func texts(names ...string) []metav1.TableColumnDefinition {
	columns := make([]metav1.TableColumnDefinition, len(names))
	for i, name := range names {
		columns[i] = metav1.TableColumnDefinition{Name: name, Type: "string"}
	}
	columns[0].Format = "name"
	return columns
}

func rfc3339(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}
