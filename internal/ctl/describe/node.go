package describe

import (
	"context"
	"fmt"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
	"minik8s/internal/api/podspec"
	"minik8s/internal/api/table"
	"minik8s/internal/client"
	"minik8s/internal/ctl/session"
)

func writeNode(ctx context.Context, s *session.Session, out *sheet, node *corev1.Node) error {
	var taints []string
	for _, t := range node.Spec.Taints {
		taints = append(taints, t.ToString())
	}
	out.lines("Taints", taints)
	out.field("Unschedulable", fmt.Sprint(node.Spec.Unschedulable))
	out.line("Conditions:")
	for _, c := range node.Status.Conditions {
		out.line("  %-20s %-8s %-8s %s", c.Type, c.Status, s.Age(c.LastTransitionTime.Time), strings.TrimSpace(c.Reason+": "+c.Message))
	}
	var addresses []string
	for _, a := range node.Status.Addresses {
		addresses = append(addresses, string(a.Type)+" "+a.Address)
	}
	out.lines("Addresses", addresses)
	out.resources("Capacity", node.Status.Capacity)
	out.resources("Allocatable", node.Status.Allocatable)
	out.line("System Info:")
	info := node.Status.NodeInfo
	out.indented("  ", func() {
		out.field("OS", info.OSImage+" ("+info.OperatingSystem+"/"+info.Architecture+")")
		out.field("Kernel", info.KernelVersion)
		out.field("Runtime", info.ContainerRuntimeVersion)
		out.field("Kubelet", info.KubeletVersion)
	})
	if len(node.Spec.PodCIDRs) > 0 {
		out.field("PodCIDRs", strings.Join(node.Spec.PodCIDRs, ", "))
	}
	pods, _, err := client.All[*corev1.Pod](ctx, s.API, api.Pods, client.ListOptions{
		Fields: fields.OneTermEqualSelector("spec.nodeName", node.Name),
	})
	if err != nil {
		return err
	}
	writeNodePods(out, node, pods)
	return nil
}

// writeNodePods lists a node's pods and how much of it they have asked for.
func writeNodePods(out *sheet, node *corev1.Node, pods []*corev1.Pod) {
	sort.Slice(pods, func(i, j int) bool {
		a, b := pods[i], pods[j]
		return a.Namespace < b.Namespace || (a.Namespace == b.Namespace && a.Name < b.Name)
	})
	out.line("Pods (%d):", len(pods))
	asked := podspec.Amounts{}
	for _, pod := range pods {
		out.line("  %-40s %s", pod.Namespace+"/"+pod.Name, table.PodStatus(pod))
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		for name, n := range podspec.Requests(&pod.Spec) {
			asked[name] += n
		}
	}
	out.line("Requested:")
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		sum, all := asked.Quantity(name), node.Status.Allocatable[name]
		share := ""
		if total := all.AsApproximateFloat64(); total > 0 {
			share = fmt.Sprintf(" (%.0f %%)", 100*sum.AsApproximateFloat64()/total)
		}
		out.line("  %-10s %s of %s%s", name, amount(sum), amount(all), share)
	}
}
