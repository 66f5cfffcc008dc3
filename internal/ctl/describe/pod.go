package describe

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"minik8s/internal/api/table"
	"minik8s/internal/ctl/console"
	"minik8s/internal/ctl/session"
)

func writePod(s *session.Session, out *sheet, pod *corev1.Pod) {
	node := pod.Spec.NodeName
	if pod.Status.HostIP != "" {
		node += " (" + pod.Status.HostIP + ")"
	}
	out.field("Node", node)
	if t := pod.Status.StartTime; t != nil {
		out.field("Start Time", s.When(*t))
	}
	state := table.PodStatus(pod)
	out.field("Status", s.Paint(console.StateColour(state), state))
	if pod.Status.Reason != "" {
		out.field("Reason", pod.Status.Reason)
	}
	if pod.Status.Message != "" {
		out.field("Message", pod.Status.Message)
	}
	out.field("IP", pod.Status.PodIP)
	out.field("Restart Policy", string(pod.Spec.RestartPolicy))
	out.field("QoS Class", string(pod.Status.QOSClass))
	if len(pod.Spec.NodeSelector) > 0 {
		out.pairs("Node Selector", pod.Spec.NodeSelector)
	}
	if len(pod.Spec.InitContainers) > 0 {
		out.line("Init Containers:")
		writeContainers(s, out, pod.Spec.InitContainers, pod.Status.InitContainerStatuses)
	}
	out.line("Containers:")
	writeContainers(s, out, pod.Spec.Containers, pod.Status.ContainerStatuses)
	if len(pod.Spec.EphemeralContainers) > 0 {
		out.line("Ephemeral Containers:")
		writeContainers(s, out, ephemeralContainers(pod), pod.Status.EphemeralContainerStatuses)
	}
	if len(pod.Status.Conditions) > 0 {
		out.line("Conditions:")
		for _, c := range pod.Status.Conditions {
			out.line("  %-26s %-8s %s", c.Type, c.Status, strings.TrimSpace(c.Reason+" "+c.Message))
		}
	}
	writeVolumes(out, pod.Spec.Volumes)
	if len(pod.Spec.Tolerations) > 0 {
		var lines []string
		for _, t := range pod.Spec.Tolerations {
			lines = append(lines, toleration(t))
		}
		out.lines("Tolerations", lines)
	}
}

// ephemeralContainers returns a pod's ephemeral containers as ordinary ones.
func ephemeralContainers(pod *corev1.Pod) []corev1.Container {
	var out []corev1.Container
	for _, e := range pod.Spec.EphemeralContainers {
		out = append(out, corev1.Container(e.EphemeralContainerCommon))
	}
	return out
}

func toleration(t corev1.Toleration) string {
	text := t.Key
	if t.Value != "" {
		text += "=" + t.Value
	}
	if t.Effect != "" {
		text += ":" + string(t.Effect)
	}
	if t.Operator != "" && t.Operator != corev1.TolerationOpEqual {
		text += " op=" + string(t.Operator)
	}
	if t.TolerationSeconds != nil {
		text += fmt.Sprintf(" for %ds", *t.TolerationSeconds)
	}
	return text
}

// writeVolumes shows each volume's source as it is written in the manifest.
func writeVolumes(out *sheet, volumes []corev1.Volume) {
	if len(volumes) == 0 {
		return
	}
	out.line("Volumes:")
	for _, v := range volumes {
		text := "emptyDir: {}"
		if data, err := json.Marshal(v.VolumeSource); err == nil && string(data) != "{}" {
			if y, err := yaml.JSONToYAML(data); err == nil {
				text = string(y)
			}
		}
		out.line("  %s:", v.Name)
		out.block("    ", text)
	}
}
