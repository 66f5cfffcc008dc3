package table

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/dialect"
)

var nodeColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name must be unique within a namespace."},
	{Name: "Status", Type: "string", Description: "The status of the node."},
	{Name: "Roles", Type: "string", Description: "The roles of the node."},
	{Name: "Age", Type: "string", Description: "The time since the node was created."},
	{Name: "Version", Type: "string", Description: "The version of the node's kubelet."},
	{Name: "Internal-IP", Type: "string", Priority: 1, Description: "The address of the node inside the cluster."},
	{Name: "External-IP", Type: "string", Priority: 1, Description: "The address of the node outside the cluster."},
	{Name: "OS-Image", Type: "string", Priority: 1, Description: "The operating system of the node."},
	{Name: "Kernel-Version", Type: "string", Priority: 1, Description: "The kernel of the node."},
	{Name: "Container-Runtime", Type: "string", Priority: 1, Description: "The container runtime of the node."},
}

func nodeRow(node *corev1.Node, now time.Time) []any {
	info := &node.Status.NodeInfo
	return []any{
		node.Name, nodeStatus(node), roles(node), since(node.CreationTimestamp.Time, now), info.KubeletVersion,
		or(address(node, corev1.NodeInternalIP), none), or(address(node, corev1.NodeExternalIP), none),
		or(info.OSImage, "<unknown>"), or(info.KernelVersion, "<unknown>"), or(info.ContainerRuntimeVersion, "<unknown>"),
	}
}

func nodeStatus(node *corev1.Node) string {
	status := "Unknown"
	if c := ready(node); c != nil {
		if status = "NotReady"; c.Status == corev1.ConditionTrue {
			status = "Ready"
		}
	}
	if node.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return status
}

func ready(node *corev1.Node) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == corev1.NodeReady {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}

func roles(node *corev1.Node) string {
	var found []string
	for key, value := range node.Labels {
		if role, ok := strings.CutPrefix(key, "node-role.kubernetes.io/"); ok && role != "" {
			found = append(found, role)
		} else if key == "kubernetes.io/role" && value != "" {
			found = append(found, value)
		}
	}
	slices.Sort(found)
	return or(strings.Join(slices.Compact(found), ","), none)
}

func address(node *corev1.Node, of corev1.NodeAddressType) string {
	for _, a := range node.Status.Addresses {
		if a.Type == of {
			return a.Address
		}
	}
	return ""
}

// The seed system's columns, word for word.
func nodeColumnsExtended() []metav1.TableColumnDefinition {
	return texts("Hostname", "Status", "Ipv4", "Cpu", "Memory", "Pods", "Last Sync Time", "Error")
}

func nodeColumnsCompact() []metav1.TableColumnDefinition { return texts("NAME", "UID", "STATUS", "IP") }

// nodeRowExtended shows the node's capacity as Cpu, Memory and Pods, since the Node object has no more than that.
func nodeRowExtended(node *corev1.Node, _ time.Time) []any {
	sync, problem := time.Time{}, ""
	if c := ready(node); c != nil {
		if sync = c.LastHeartbeatTime.Time; sync.IsZero() {
			sync = c.LastTransitionTime.Time
		}
		if c.Status != corev1.ConditionTrue {
			problem = or(c.Message, c.Reason)
		}
	}
	return []any{
		node.Name, nodeStateExtended(node), or(seedAddress(node), "-"), room(node, corev1.ResourceCPU), room(node, corev1.ResourceMemory),
		room(node, corev1.ResourcePods), rfc3339(sync), or(problem, "-"),
	}
}

func nodeRowCompact(node *corev1.Node, _ time.Time) []any {
	return []any{node.Name, string(node.UID), nodeStateCompact(node), seedAddress(node)}
}

// nodeStateExtended returns Ready, NotReady, Unknown or Deleted.
func nodeStateExtended(node *corev1.Node) string {
	c := ready(node)
	switch {
	case node.DeletionTimestamp != nil:
		return "Deleted"
	case c == nil || c.Status == corev1.ConditionUnknown:
		return "Unknown"
	case c.Status == corev1.ConditionTrue:
		return "Ready"
	}
	return "NotReady"
}

// nodeStateCompact returns Pending until the kubelet is up, Running while it is Ready, Terminated afterwards.
func nodeStateCompact(node *corev1.Node) string {
	c := ready(node)
	switch {
	case node.DeletionTimestamp != nil:
		return "Terminated"
	case c == nil:
		return "Pending"
	case c.Status == corev1.ConditionTrue:
		return "Running"
	}
	return "Terminated"
}

// seedAddress returns the address that the node reports, or else the one from its manifest.
func seedAddress(node *corev1.Node) string {
	return or(address(node, corev1.NodeInternalIP), node.Annotations[dialect.NodeIP])
}

func room(node *corev1.Node, name corev1.ResourceName) string {
	q, ok := node.Status.Allocatable[name]
	if !ok {
		return "-"
	}
	return q.String()
}
